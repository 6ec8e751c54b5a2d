/** Whatever a client repeats although nothing has changed that it asks about, it repeats less and less often. */
import type { AuditEntry } from '../kit/api-server/audit.ts'
import { type Selection, selectionOf } from '../kit/api-server/selectors.ts'
import type { Change } from '../kit/api-server/store.ts'
import { hostOfClient } from './cluster.ts'
import type { Promised } from './promised.ts'

/** For so long a client may repeat a request as often as `request-rate` lets it. */
const freeMs = 120_000
/** As often as a request that fails is repeated in the end, with its jitter, and for several reasons at once. */
const maxPerMinute = 6
/** What comes so much later is asked for another reason. */
const forgetMs = 60_000

/** The same request of a client, again and again, with nothing of its object changed in between. */
type Run = {
  readonly client: string
  readonly entry: AuditEntry
  startedAtMs: number
  /** In the last minute. */
  times: number[]
  selection?: Selection
}

export const backsOff: Promised = {
  name: 'backs-off',
  watch(_, violate) {
    const runs = new Map<string, Run>()
    /** Their keys, by name of an object, or of a collection for those that list it. */
    const keysAbout = new Map<string, Set<string>>()
    let checks = 0

    function end(subject: string, isOver: (run: Run) => boolean): void {
      const keys = keysAbout.get(subject)
      for (const key of keys ?? []) {
        const run = runs.get(key)
        if (run !== undefined && !isOver(run)) continue
        runs.delete(key)
        keys?.delete(key)
      }
    }

    function changed({ resource, version, previous }: Change, atMs: number): void {
      // whoever waited less and less often for the old spec begins anew with another one
      if (resource.plural === 'skyhooks' && previous?.object.metadata.generation !== version.object.metadata.generation)
        for (const run of runs.values()) run.startedAtMs = atMs
      end(`${resource.plural} ${version.object.metadata.name}`, () => true)
      end(resource.plural, (run) => {
        run.selection ??= selectionOf(resource, run.entry.query)
        return [version, previous].some((one) => one !== undefined && run.selection?.matches(one.object) === true)
      })
    }

    function answered(entry: AuditEntry, atMs: number): void {
      const { client, verb, resource, namespace, name, query } = entry
      if (hostOfClient(client, 'agent') === undefined && hostOfClient(client, 'census') === undefined) return
      if (verb === 'watch' || entry.isCommitted) return // the change ends what was before
      if (resource === 'pods/eviction' || (resource === 'pods' && verb === 'get')) return // for ten minutes at most
      const { labelSelector = '', fieldSelector = '' } = query
      const key = [client, verb, resource, namespace, name, labelSelector, fieldSelector, query['continue']].join(' ')
      const known = runs.get(key)
      const last = known?.times.at(-1) ?? -Infinity
      if (known === undefined || atMs - last > forgetMs) {
        runs.set(key, { client, entry, startedAtMs: atMs, times: [atMs] })
        const [plural = ''] = resource.split('/')
        const subject = name === '' ? plural : `${plural} ${name}`
        keysAbout.set(subject, (keysAbout.get(subject) ?? new Set()).add(key))
        return
      }
      checks++
      known.times = [...known.times.filter((time) => atMs - time < 60_000), atMs]
      const seconds = (atMs - known.startedAtMs) / 1_000
      if (atMs - known.startedAtMs > freeMs && known.times.length > maxPerMinute)
        violate(
          `${client} repeats ${verb} ${resource} ${name || labelSelector || fieldSelector} ` +
            `${known.times.length} times in a minute, after ${Math.round(seconds)} s without a change of it`,
        )
    }

    return {
      on(event, atMs) {
        if (event.kind === 'restored') runs.clear()
        else if (event.kind === 'commit') changed(event.change, atMs)
        else if (event.kind === 'answered') answered(event.entry, atMs)
        else if (event.kind === 'host' && event.event.event === 'agentStarted') {
          const client = `${event.event.kind}:${event.host}`
          for (const [key, run] of runs) if (run.client === client) runs.delete(key)
        }
      },
      checks: () => checks,
    }
  },
}
