import { checkOf, type PackageConfig, type Stage } from '../../schemas/package-config.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { agentVariables, variableOf } from '../../schemas/step-variables.ts'

/** The fields of a package of a Skyhook that are inputs of its steps, and those that decide which stages run. */
export type Inputs = Pick<PackageSpec, 'configMap' | 'env' | 'interrupt' | 'configInterrupts'>

export type MissingNames = {
  /** Keys of `configMap`. */
  readonly files: readonly string[]
  /** Names in `env` that arguments of steps use. */
  readonly variables: readonly string[]
}

/**
 * The inputs that the package expects and the spec lacks, for people. They are known before the node is disturbed.
 * Undefined when nothing is missing.
 * @param ownConfigFiles those that the image ships
 */
export function missingInputs(
  config: PackageConfig,
  spec: Inputs,
  stage: Stage,
  ownConfigFiles: readonly string[] = [],
): string | undefined {
  const { files, variables } = missingIn(config, spec, stagesFrom(stage, spec), ownConfigFiles)
  const problems = [
    ...(files.length > 0 ? [`its configMap lacks ${files.join(', ')}, which the package expects`] : []),
    ...(variables.length > 0 ? [`its env lacks ${variables.join(', ')}, which arguments of its steps name`] : []),
  ]
  return problems.length > 0 ? problems.join('; ') : undefined
}

/**
 * The result of {@link missingInputs} on a host where the package is new, or on one that has an older version of it.
 */
export const missingOnHosts = (
  config: PackageConfig,
  spec: Inputs,
  ownConfigFiles: readonly string[] = [],
): MissingNames => missingIn(config, spec, ['apply', ...stagesFrom('upgrade', spec)], ownConfigFiles)

function missingIn(
  config: PackageConfig,
  spec: Inputs,
  stages: readonly Stage[],
  ownConfigFiles: readonly string[],
): MissingNames {
  const present = new Set([...Object.keys(spec.configMap ?? {}), ...ownConfigFiles])
  const known = new Set<string>([...agentVariables, ...(spec.env ?? []).map(({ name }) => name)])
  const named = stages.flatMap((stage) =>
    [stage, checkOf(stage)].flatMap((mode) => (config.modes[mode] ?? []).flatMap((step) => step.arguments)),
  )
  const variables = named.flatMap((argument) => variableOf(argument) ?? [])
  return {
    files: [...new Set(config.expectedConfigFiles.filter((name) => !present.has(name)))],
    variables: [...new Set(variables.filter((name) => !known.has(name)))],
  }
}

/** The stages that run if this one does. */
function stagesFrom(stage: Stage, { interrupt, configInterrupts }: Inputs): readonly Stage[] {
  const isInterrupting = interrupt !== undefined || configInterrupts !== undefined
  const following: readonly Stage[] = isInterrupting ? ['config', 'post-interrupt'] : ['config']
  return stage === 'config' ? following : [stage, ...following]
}
