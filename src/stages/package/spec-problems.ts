/** Errors in a spec that the API server accepted but no host can carry out. */
import { literalProblems } from '../../schemas/environment-variable.ts'
import { perObject } from '../../schemas/per-object.ts'
import { serviceNameProblem } from '../../schemas/service-name.ts'
import type { Interrupt, PackageSpec } from '../../schemas/skyhook.ts'
import { dependencyProblems } from './dependencies.ts'

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
