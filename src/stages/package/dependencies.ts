import type { PackageSpec } from '../../schemas/skyhook.ts'
import { perObject } from '../../schemas/per-object.ts'
import { ownValue } from '../../schemas/own-value.ts'
import { satisfiesConstraint, isVersionOrRange } from './versions.ts'

type Packages = Readonly<Record<string, PackageSpec>>

/** Errors of a dependency graph: unknown names, missing versions, self-dependencies, cycles. One sentence each. */
export const dependencyProblems: (packages: Packages) => readonly string[] = perObject((packages) => {
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

function findCycle(packages: Packages): string[] | undefined {
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
