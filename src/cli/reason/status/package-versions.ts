/** The packages of a rollout: installed versions and next versions. Pure. */
import type { SkyhookSpec } from '../../../schemas/skyhook.ts'
import type { PackageVersions } from '../../base/output/rollout-texts.ts'
import type { NodeFact } from './node-facts.ts'

/** By name; those that left the spec come last. */
export function packageVersions(
  { packages = {} }: SkyhookSpec,
  facts: readonly NodeFact[],
): readonly PackageVersions[] {
  const published = facts.flatMap(({ status, report }) => (status === 'complete' ? [] : (report?.packages ?? [])))
  const versionsOf = new Map<string, Set<string>>()
  for (const key of new Set(published)) {
    const [name = '', version = ''] = key.split('|')
    versionsOf.set(name, (versionsOf.get(name) ?? new Set()).add(version))
  }
  const otherThan = (name: string, desired?: string): readonly string[] =>
    [...(versionsOf.get(name) ?? [])].filter((version) => version !== desired).toSorted(inOrder)
  const gone = [...versionsOf.keys()].filter((name) => !Object.hasOwn(packages, name))
  return [
    ...Object.entries(packages)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, { version }]) => ({ name, version, from: otherThan(name, version) })),
    ...gone.toSorted((a, b) => (a < b ? -1 : 1)).map((name) => ({ name, from: otherThan(name) })),
  ]
}

const inOrder = (one: string, other: string): number => one.localeCompare(other, 'en', { numeric: true })
