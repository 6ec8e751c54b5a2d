/** Errors in a spec that the API server accepted but no host can carry out. */
import { agentVariables, literalProblems, variableOf } from '../../schemas/environment-variable.ts'
import { ownValue } from '../../schemas/json.ts'
import { checkOf, type PackageConfig, type Stage } from '../../schemas/package-config.ts'
import { perObject } from '../../schemas/per-object.ts'
import type { Interrupt, PackageSpec } from '../../schemas/skyhook.ts'
import { serviceNameProblem } from '../../schemas/systemd.ts'
import { isVersionOrRange, satisfiesConstraint } from './next-stage.ts'

type Packages = Readonly<Record<string, PackageSpec>>

/** `path`: names of fields, keys and indexes, from the package on. */
export type SpecProblem = {
  readonly path: readonly (string | number)[]
  readonly problem: string
  readonly remedy: string
}

/** One sentence each, naming the field. Only an edit of the Skyhook fixes them. */
export const specProblems: (packages: Packages) => readonly string[] = perObject((packages) => [
  ...dependencyProblems(packages),
  ...Object.entries(packages)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, spec]) =>
      [...serviceProblems(spec), ...variableProblems(spec)].map(
        ({ path, problem, remedy }) => `packages.${name}${path.map(segment).join('')}: ${problem}: ${remedy}`,
      ),
    ),
])

const segment = (part: string | number): string =>
  typeof part === 'number' ? `[${part}]` : /^\w+$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`

/** Names of services that no unit can have: their restart would fail on each node, after its drain. */
export function serviceProblems({ interrupt, configInterrupts = {} }: PackageSpec): readonly SpecProblem[] {
  const keyed = Object.entries(configInterrupts).map(([key, one]) => [['configInterrupts', key], one] as const)
  const all: readonly (readonly [readonly string[], Interrupt])[] = interrupt
    ? [[['interrupt'], interrupt], ...keyed]
    : keyed
  return all.flatMap(([path, { type, services = [] }]) =>
    (type === 'service' ? services : []).flatMap((name, index): SpecProblem[] => {
      const problem = serviceNameProblem(name)
      if (problem === undefined) return []
      return [{ ...problem, path: [...path, 'services', index], problem: `${JSON.stringify(name)} ${problem.problem}` }]
    }),
  )
}

/** Variables that no process can have. */
export const variableProblems = ({ env = [] }: PackageSpec): readonly SpecProblem[] =>
  literalProblems(env).map(({ index, problem }) => ({
    path: index === undefined ? ['env'] : ['env', index, 'value'],
    problem: index === undefined ? problem : `${env[index]?.name} ${problem}`,
    remedy: 'put the text into configMap, and read the file',
  }))

type PackagesByName = Readonly<Record<string, PackageSpec>>

/** Errors of a dependency graph: unknown names, missing versions, self-dependencies, cycles. One sentence each. */
export const dependencyProblems: (packages: PackagesByName) => readonly string[] = perObject((packages) => {
  const problems: string[] = []
  for (const [name, { dependsOn = {} }] of sorted(packages)) {
    for (const [needed, constraint] of sorted(dependsOn)) {
      const fieldPath = `packages.${name}.dependsOn.${needed}`
      const target = ownValue(packages, needed)
      if (needed === name) problems.push(`${fieldPath}: a package cannot depend on itself`)
      else if (!target) problems.push(`${fieldPath}: this Skyhook has no package ${needed}`)
      else if (!isVersionOrRange(constraint))
        problems.push(`${fieldPath}: ${JSON.stringify(constraint)} is neither a version nor a semver range`)
      else if (!satisfiesConstraint(target.version, constraint))
        problems.push(`${fieldPath}: requires ${constraint}, but ${needed} is at ${target.version}`)
    }
  }
  const cycle = findCycle(packages)
  if (cycle)
    problems.push(`packages.${cycle[0]}.dependsOn: cycle ${cycle.join(' -> ')}; remove one of these dependencies`)
  return problems
})

function findCycle(packages: PackagesByName): string[] | undefined {
  const done = new Set<string>()
  const visit = (name: string, path: readonly string[]): string[] | undefined => {
    const at = path.indexOf(name)
    // a self-dependency has its own message
    if (at >= 0) return path.length - at > 1 ? [...path.slice(at), name] : undefined
    if (done.has(name)) return undefined
    for (const next of Object.keys(ownValue(packages, name)?.dependsOn ?? {}).sort()) {
      const cycle = visit(next, [...path, name])
      if (cycle) return cycle
    }
    done.add(name)
    return undefined
  }
  for (const name of Object.keys(packages).sort()) {
    const cycle = visit(name, [])
    if (cycle) return cycle
  }
  return undefined
}

const sorted = <T>(record: Readonly<Record<string, T>>): [string, T][] =>
  Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1))

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
