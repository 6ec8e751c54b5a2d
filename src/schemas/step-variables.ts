/** Variables that every step has in addition to the package's `env`, and that an argument `env:NAME` may name. */
export const agentVariables = [
  'PATH',
  'HOME',
  'SKYHOOK_LOG_DIR',
  'SKYHOOK_ROOT_DIR',
  'COPY_RESOLV',
  'SKYHOOK_RESOURCE_ID',
] as const

/** The variable that a step's argument refers to; undefined for a literal argument. */
export const variableOf = (argument: string): string | undefined =>
  argument.startsWith('env:') ? argument.slice('env:'.length) : undefined
