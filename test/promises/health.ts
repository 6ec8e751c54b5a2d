/** For how long agents have been able to do what is asked of them: a rule that gives them time counts only that. */
import type { Fact, Host, World } from './facts.ts'

export type Health = {
  /** Since when one agent has run there without a break, reached the API server, and had no fault; undefined: not now. */
  readonly sinceMs: (host: string) => number | undefined
  /** All such time of the host until the last tick. */
  readonly totalMs: (host: string) => number
  readonly see: (event: Fact) => void
  readonly tick: (atMs: number) => void
}

type Record = { sinceMs: number | undefined; totalMs: number; lastMs: number }

export const isHealthy = (view: Host): boolean =>
  view.host.power() === 'up' && view.agents().length === 1 && view.reachesApi() && !view.isFaulty()

export function followHealth(world: World): Health {
  const records = new Map<string, Record>()
  const recordOf = (host: string): Record => {
    const record = records.get(host) ?? { sinceMs: undefined, totalMs: 0, lastMs: 0 }
    records.set(host, record)
    return record
  }
  return {
    sinceMs: (host) => records.get(host)?.sinceMs,
    totalMs: (host) => records.get(host)?.totalMs ?? 0,
    see(event) {
      if (event.kind === 'restored') for (const record of records.values()) record.sinceMs = undefined
      if (event.kind !== 'host') return
      const { event: what } = event.event
      if (what === 'agentEnded' || what === 'wentDown') recordOf(event.host).sinceMs = undefined
    },
    tick(atMs) {
      for (const [name, view] of world.hosts) {
        const record = recordOf(name)
        if (!isHealthy(view)) record.sinceMs = undefined
        else if (record.sinceMs === undefined) record.sinceMs = atMs
        else record.totalMs += atMs - record.lastMs
        record.lastMs = atMs
      }
    },
  }
}
