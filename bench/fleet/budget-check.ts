/** Whether a budget was kept, and how fast its slots went from node to node, from the API server's audit log. */
import type { AuditedRequest } from './audit-log.ts'

export type Change = { readonly atMs: number; readonly change: 1 | -1 }

const isSlotOf =
  (scope: string) =>
  ({ resource, name }: AuditedRequest): boolean =>
    resource === 'leases' && name.startsWith(`${scope}.slot-`)

const isDone = ({ code }: AuditedRequest): boolean => code >= 200 && code < 300

/**
 * The most slots of a scope that were certainly held at once: each from the answer to its creation until its deletion
 * was asked for. `scope`: what their names start with.
 */
export function mostSlots(requests: readonly AuditedRequest[], scope: string): number {
  const done = requests.filter(isDone).filter(isSlotOf(scope))
  return mostAtOnce(
    done.flatMap(({ verb, receivedMs, answeredMs }): Change[] => {
      if (verb === 'create') return [{ atMs: answeredMs, change: 1 }]
      return verb === 'delete' ? [{ atMs: receivedMs, change: -1 }] : []
    }),
  )
}

/** The largest sum of the changes so far. Of changes in the same ms, decreases come first. */
export function mostAtOnce(changes: readonly Change[]): number {
  let [now, most] = [0, 0]
  for (const { change } of changes.toSorted((a, b) => a.atMs - b.atMs || a.change - b.change))
    most = Math.max(most, (now += change))
  return most
}

/** For each slot that was freed, the time until the next one was taken, in ms, while nodes waited. */
export function handOvers(requests: readonly AuditedRequest[], scope: string, limit: number): number[] {
  const done = requests.filter(isDone).filter(isSlotOf(scope))
  const timesOf = (wanted: string): number[] =>
    done
      .filter(({ verb }) => verb === wanted)
      .map(({ answeredMs }) => answeredMs)
      .toSorted((a, b) => a - b)
  const [taken, freed] = [timesOf('create'), timesOf('delete')]
  return taken.slice(limit).map((atMs, index) => Math.max(0, atMs - (freed[index] ?? atMs)))
}
