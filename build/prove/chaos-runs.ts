/** What the record of chaos says: each run has its seed and its minutes (test/chaos/campaign.ts). */

/** Of the names in the record. */
export function chaosRuns(names: readonly string[]): { readonly seeds: ReadonlySet<number>; readonly minutes: number } {
  const runs = names.map((name) => /^seed (\d+): ([\d.]+) min$/.exec(name)?.slice(1).map(Number) ?? [])
  const minutes = runs.reduce((sum, [, one = 0]) => sum + one, 0)
  return { seeds: new Set(runs.map(([seed = 0]) => seed)), minutes }
}
