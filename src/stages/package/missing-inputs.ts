import { checkOf, type PackageConfig, type Stage } from '../../schemas/package-config.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { agentVariables, variableOf } from '../../schemas/step-variables.ts'

/**
 * What the package expects of the spec and does not find, for people: files of its configMap, and variables of its env
 * that arguments name. It is known before the node is disturbed. Undefined when nothing is missing.
 * @param ownConfigFiles those that the image ships
 */
export function missingInputs(
  config: PackageConfig,
  spec: PackageSpec,
  stage: Stage,
  ownConfigFiles: readonly string[] = [],
): string | undefined {
  const present = new Set([...Object.keys(spec.configMap ?? {}), ...ownConfigFiles])
  const files = config.expectedConfigFiles.filter((name) => !present.has(name))
  const variables = new Set<string>([...agentVariables, ...(spec.env ?? []).map(({ name }) => name)])
  const named = stagesFrom(stage, spec).flatMap((each) =>
    [each, checkOf(each)].flatMap((mode) => (config.modes[mode] ?? []).flatMap((step) => step.arguments)),
  )
  const absent = new Set(named.flatMap((argument) => variableOf(argument) ?? []).filter((name) => !variables.has(name)))
  const problems = [
    ...(files.length > 0 ? [`its configMap lacks ${[...new Set(files)].join(', ')}, which the package expects`] : []),
    ...(absent.size > 0 ? [`its env lacks ${[...absent].join(', ')}, which arguments of its steps name`] : []),
  ]
  return problems.length > 0 ? problems.join('; ') : undefined
}

/** The stages that run if this one does. */
function stagesFrom(stage: Stage, { interrupt, configInterrupts }: PackageSpec): readonly Stage[] {
  const isInterrupting = interrupt !== undefined || configInterrupts !== undefined
  const following: readonly Stage[] = isInterrupting ? ['config', 'post-interrupt'] : ['config']
  return stage === 'config' ? following : [stage, ...following]
}
