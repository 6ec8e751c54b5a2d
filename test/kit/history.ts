/**
 * The history oracle: watches record every version of Nodes, slots, Skyhooks, pods and Events, and assertions range
 * over all of them. Polling would miss exactly the states that must never occur.
 */
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { type KubeObject, listAll } from '../../src/kube/objects.ts'
import type { KubeTransport } from '../../src/kube/transport.ts'
import { watchEvents } from '../../src/kube/watch.ts'
import { paths } from './cluster/kube.ts'
import {
  applyVersion,
  emptyView,
  type Kind,
  keyOf,
  moments,
  type Moment,
  type Version,
  type View,
} from './cluster/moments.ts'
import { timeline, type Note } from './cluster/timeline.ts'
import { onThisMachine } from './machine-speed.ts'

export type Occurrence = { readonly resourceVersion: number; readonly atMs: number }
export type Predicate = (view: View) => boolean

export type History = {
  /** As of the last events that arrived. */
  readonly now: View
  /**
   * Resolves at the first version at which `holds` is true, including the current one. `what` is the condition in
   * words.
   */
  eventually(what: string, holds: Predicate, withinMs?: number): Promise<Occurrence>
  /** Throws if `fault` describes a fault at any version since the start of the recording. */
  never(what: string, fault: (moment: Moment) => string | undefined | false): Promise<void>
  /** The first version at which `holds` was true; undefined if it never was. */
  first(holds: Predicate): Promise<Occurrence | undefined>
  /** Throws unless both were true, `earlier` at an earlier version than `later`. */
  before(
    earlier: readonly [what: string, holds: Predicate],
    later: readonly [what: string, holds: Predicate],
  ): Promise<void>
  /** Every recorded moment, in the order of the changes, up to the last write that was acknowledged before the call. */
  moments(): Promise<Iterable<Moment>>
  /** Distinct successive values of something, in order. */
  values<T>(of: (view: View) => T): Promise<T[]>
  /** The changes in readable form, one per line, with notes between them. */
  format(notes?: readonly Note[]): string
  stop(): void
}

const kinds: readonly Kind[] = ['nodes', 'leases', 'skyhooks', 'pods', 'events']
/** Many times what anything takes on an idle machine: agents get small shares of a busy one. */
const defaultWithinMs = 60_000
const watchTimeoutSeconds = 1_800
/** Bookmarks arrive about once a minute. */
const maxSilenceMs = 300_000

/** Starts to record. Resolves when all watches are open: the record contains everything from then on. */
export async function record(api: KubeTransport): Promise<History> {
  const stopping = new AbortController()
  const startedMs = Date.now()
  let now = emptyView()
  let start = emptyView()
  const versions: Version[] = []
  const listeners = new Set<() => void>()
  let broken: Error | undefined

  const note = (version: Version): void => {
    versions.push(version)
    now = applyVersion(now, version)
    for (const listener of listeners) listener()
  }

  /**
   * Watches, one after another without a gap: each begins where the last one has ended. A gap would make every "never"
   * worthless, so a watch that the server cannot continue breaks the record.
   */
  async function follow(kind: Kind): Promise<void> {
    const { items, resourceVersion } = await listAll<KubeObject, KubeObject>(api, paths[kind], {
      transform: (object) => object,
    })
    for (const object of items) {
      const initial = versionOf(kind, 'ADDED', object)
      start = applyVersion(start, initial)
      now = applyVersion(now, initial)
    }
    const opened = Promise.withResolvers<void>()
    const watching = async (): Promise<never> => {
      const limits = {
        clock: systemClock,
        timeoutSeconds: watchTimeoutSeconds,
        idleTimeoutMs: maxSilenceMs,
        signal: stopping.signal,
        onOpen: () => opened.resolve(),
      }
      let reached = resourceVersion
      for (;;) {
        for await (const event of watchEvents(api, { path: paths[kind], resourceVersion: reached, ...limits })) {
          if (event.type === 'ERROR') throw new Error(`the watch of ${kind} answered ${JSON.stringify(event.object)}`)
          reached = event.object.metadata.resourceVersion
          if (event.type !== 'BOOKMARK') note(versionOf(kind, event.type, event.object))
        }
        stopping.signal.throwIfAborted()
      }
    }
    watching().catch((error: unknown) => {
      if (stopping.signal.aborted) return
      broken = new Error(`the record has a gap: ${String(error)}`, { cause: error })
      opened.reject(broken)
      for (const listener of listeners) listener()
    })
    await opened.promise
  }

  /** Waits until the record contains every write that was acknowledged before this call. */
  async function sync(): Promise<void> {
    for (const kind of kinds) {
      const { items, resourceVersion } = await listAll<KubeObject, KubeObject>(api, paths[kind], {
        transform: (object) => object,
      })
      const listed = new Map(
        items.map((object) => [keyOf(versionOf(kind, 'ADDED', object)), object.metadata.resourceVersion]),
      )
      await until(`the watch of ${kind} has arrived at version ${resourceVersion}`, () => {
        const observed = now[kind]
        const isThere = ([key, version]: [string, string]): boolean =>
          Number(observed.get(key)?.metadata.resourceVersion ?? 0) >= Number(version)
        const isLater = ([key, object]: [string, { metadata: { resourceVersion: string } }]): boolean =>
          listed.has(key) || Number(object.metadata.resourceVersion) > Number(resourceVersion)
        return (
          [...listed].every((entry) => isThere(entry) || wasDeletedSince(kind, entry)) && [...observed].every(isLater)
        )
      })
    }
  }

  const wasDeletedSince = (kind: Kind, [key, listed]: readonly [string, string]): boolean =>
    versions.some(
      (version) =>
        version.kind === kind &&
        version.type === 'DELETED' &&
        keyOf(version) === key &&
        version.resourceVersion > Number(listed),
    )

  function until(what: string, holds: () => boolean, withinMs = defaultWithinMs): Promise<Occurrence> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        clearTimeout(timer)
        listeners.delete(check)
        settle()
      }
      const check = (): void => {
        try {
          if (broken) throw broken
          if (!holds()) return
        } catch (error) {
          return end(() => reject(error as Error))
        }
        const last = versions.at(-1)
        end(() => resolve({ resourceVersion: last?.resourceVersion ?? 0, atMs: last?.atMs ?? Date.now() }))
      }
      const giveUp = (): void => end(() => reject(new Error(`not within ${withinMs} ms: ${what}`)))
      // the bound is that of a quiet machine; how slow this one is, is measured only where it is late
      const late = (): void => void (timer = setTimeout(giveUp, onThisMachine(withinMs) - withinMs))
      let timer = setTimeout(late, withinMs)
      listeners.add(check)
      check()
    })
  }

  async function all(): Promise<Generator<Moment, void>> {
    await sync()
    if (broken) throw broken
    return moments(start, versions)
  }

  const history: History = {
    get now() {
      return now
    },
    eventually: (what, holds, withinMs) => until(what, () => holds(now), withinMs),
    async never(what, fault) {
      for (const moment of await all()) {
        const found = fault(moment)
        if (found)
          throw new Error(`${what}: ${found}, at version ${moment.change.resourceVersion}\n${history.format()}`)
      }
    },
    async first(holds) {
      for (const moment of await all()) {
        const { resourceVersion, atMs } = moment.change
        if (holds(moment)) return { resourceVersion, atMs }
      }
      return undefined
    },
    async before([earlierWhat, earlier], [laterWhat, later]) {
      const [one, other] = [await history.first(earlier), await history.first(later)]
      if (!one || !other) throw new Error(`it never was ${one ? laterWhat : earlierWhat}\n${history.format()}`)
      if (one.resourceVersion >= other.resourceVersion)
        throw new Error(`${laterWhat} came before ${earlierWhat}\n${history.format()}`)
    },
    moments: all,
    async values(of) {
      const found: ReturnType<typeof of>[] = []
      for (const moment of await all()) {
        const value = of(moment)
        if (found.length === 0 || JSON.stringify(found.at(-1)) !== JSON.stringify(value)) found.push(value)
      }
      return found
    },
    format: (notes) => timeline(start, versions, startedMs, notes),
    stop: () => stopping.abort(new Error('the recording is over')),
  }
  await Promise.all(kinds.map(follow))
  return history
}

function versionOf(kind: Kind, type: Version['type'], object: KubeObject): Version {
  return { kind, type, object, resourceVersion: Number(object.metadata.resourceVersion), atMs: Date.now() } as Version
}
