/** Variables that every step has beside the package's `env`, and that an argument `env:NAME` may name. */
export const agentVariables = [
  'PATH',
  'HOME',
  'SKYHOOK_LOG_DIR',
  'SKYHOOK_ROOT_DIR',
  'COPY_RESOLV',
  'SKYHOOK_RESOURCE_ID',
] as const

/** The variable that a step's argument stands for; undefined for an argument that stands for itself. */
export const variableOf = (argument: string): string | undefined =>
  argument.startsWith('env:') ? argument.slice('env:'.length) : undefined
