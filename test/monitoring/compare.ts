/** Values that Prometheus answers beside those of the recorded history. */
import { censusNode, type Moment, momentsBetween } from './history.ts'
import { key, type PanelTruth, type Values } from './panel-truth.ts'
import type { QueryResult } from './prometheus-server.ts'

/** How long a change of an object takes to the series, or a series to the status of an object. */
const lagMs = 15_000

/** Differences at a scrape, in words; each value may be that of any moment within the lag around it. */
export function differences(
  truth: PanelTruth,
  results: readonly QueryResult[],
  moments: readonly Moment[],
  atMs: number,
): readonly string[] {
  const { tolerance = 0, ignoring = [] } = truth
  const found = new Map(
    results.flatMap(({ labels, values }) => {
      const value = values.get(atMs)
      const known = Object.fromEntries(Object.entries(labels).filter(([label]) => !ignoring.includes(label)))
      return value === undefined ? [] : [[key(known), value] as const]
    }),
  )
  const around = possibleValues(truth, moments, atMs)
  const names = new Set([...found.keys(), ...around.flatMap((values) => [...values.keys()])])
  return [...names].flatMap((name) => {
    const value = found.get(name)
    const isRight = around.some((values) => {
      const expected = values.get(name)
      if (expected === undefined || value === undefined) return expected === value
      return Math.abs(expected - value) <= tolerance
    })
    const expected = [...new Set(around.map((values) => values.get(name)))].join(' or ')
    return isRight ? [] : [`${name} is ${value}, and was ${expected}`]
  })
}

/** An agent may answer scrapes for as long before its pod is Ready, and after. */
const startsWithinMs = 60_000

function possibleValues({ valuesAt, from }: PanelTruth, moments: readonly Moment[], atMs: number): readonly Values[] {
  const around = momentsBetween(moments, atMs - lagMs, atMs + lagMs)
  // what counts time changes without a change of an object
  const now = momentsBetween(moments, atMs, atMs)
  const times = [atMs - lagMs, atMs, atMs + lagMs]
  const values = (all: readonly Moment[], at: readonly number[]): Values[] =>
    all.flatMap((one) => at.map((time) => valuesAt(one, time)))
  const possible = [...values(around, [atMs]), ...values(now, times)]
  if (from === 'agents') {
    const serving = around.map((one) => ({
      ...one,
      agentAwaySinceMs: new Map([...one.agentAwaySinceMs].filter(([, sinceMs]) => atMs - sinceMs >= startsWithinMs)),
    }))
    return [...possible, ...values(serving, [atMs])]
  }
  // nobody serves the series while nobody is elected, and until the next census has counted
  const censuses = new Set(around.map(censusNode))
  if (censuses.size > 1) possible.push(new Map())
  return censuses.size === 1 && censuses.has(undefined) ? [new Map()] : possible
}
