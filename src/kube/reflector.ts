/**
 * Keeps a local copy of one collection equal to the API server's: LIST, then WATCH from its resourceVersion, forever.
 * Lists again after each watch that did not end in time: docs/design/decisions/restored-etcd.md says why.
 *
 * Invariant: "not known" is never shown as "empty". The store is emptied only by a successful LIST, by DELETED events,
 * or when the server has answered twice that it does not serve the kind at all.
 */
import { backoffMs, type Backoff } from '../schemas/backoff.ts'
import { sleep, type Clock, type Random } from '../schemas/clock.ts'
import {
  apiErrorFromEvent,
  isNotFound,
  isTooManyRequests,
  isTransient,
  NoResponseError,
  retryAfterMsOf,
} from './errors.ts'
import { type KubeObject, type ListResult, listAll, metadataOnlyAccept, metadataOnlyListAccept } from './objects.ts'
import { requestBackoff } from './retry.ts'
import { createStore, type Change } from './store.ts'
import type { Query, KubeTransport } from './transport.ts'
import { watchEvents } from './watch.ts'

export type LastError = { readonly sinceMs: number; readonly error: unknown }

/** Times are steady ms. */
export type ReflectorState =
  /** Never listed, or a due LIST is refused with `lastError`; the store holds what was known before. */
  | { readonly state: 'unknown'; readonly sinceMs: number; readonly lastError?: LastError }
  /** The store is complete; with `lastError` the watch is currently broken and changes since then are not seen. */
  | { readonly state: 'synced'; readonly sinceMs: number; readonly lastError?: LastError }
  /** The server does not serve this kind: its CRD is not installed, or was removed. The store is empty. */
  | { readonly state: 'absent'; readonly sinceMs: number }

/** Why changes are currently not seen; undefined while they are. */
export const lastErrorOf = (state: ReflectorState): LastError | undefined =>
  state.state === 'absent' ? undefined : state.lastError

export type ReflectorUpdate<T extends KubeObject> = {
  readonly state: ReflectorState
  readonly changes: readonly Change<T>[]
  /** The changes are the differences that a LIST found; intermediate states are not known. */
  readonly isListed: boolean
}

/** For logs and metrics only. */
export type ReflectorFact =
  | { readonly fact: 'listed'; readonly count: number }
  | { readonly fact: 'watching' }
  | { readonly fact: 'watch-ended' }
  | {
      readonly fact: 'failed'
      readonly during: 'list' | 'watch'
      readonly error: unknown
      readonly willRelist: boolean
      readonly retryInMs: number
    }

export type ReflectorOptions<T extends KubeObject> = {
  readonly clock: Clock
  readonly random: Random
  /** The collection, for example `/api/v1/nodes`. */
  readonly path: string
  /** Selectors; `fieldSelector: 'metadata.name=x'` follows a single object. */
  readonly query?: Query
  /** Fetch metadata only: `T` then has nothing else. */
  readonly metadataOnly?: boolean
  /** Lists also after a watch that was refused temporarily: a `synced` store without an error misses nothing. */
  readonly relistsAfterOverload?: boolean
  /** Leaves out what the store need not hold; managedFields are always left out. */
  readonly transform?: (object: T) => T
  /** Called after store and state changed, with all changes of one list or event. Must be quick and must not throw. */
  readonly onChange: (update: ReflectorUpdate<T>) => void
  /** Called after each complete LIST with the whole store, also when nothing changed. As quick as `onChange`. */
  readonly onListed?: (objects: Iterable<T>) => void
  readonly onFact?: (fact: ReflectorFact) => void
  /** The result of an earlier read: the watch starts there, without a LIST. */
  readonly initial?: ListResult<T>
  readonly signal: AbortSignal
  readonly timing?: Partial<ReflectorTiming>
}

export type ReflectorTiming = {
  readonly backoff: Backoff
  /** How long a watch lasts at least; at most twice as long, so that a fleet's watches do not end together. */
  readonly minWatchTimeoutSeconds: number
  readonly idleTimeoutMs: number
  readonly pageSize: number
}

export type Reflector<T extends KubeObject> = {
  /** Resolves after the first complete LIST, or once the kind is known to be absent; rejects when aborted before. */
  readonly synced: Promise<void>
  /** Resolves when the reflector has stopped after an abort; rejects only with what `onChange` threw. */
  readonly ended: Promise<void>
  readonly store: ReadonlyMap<string, T>
  /**
   * Ends the watch, and lists: for callers whose requests are refused over what the store shows. Repeated calls count
   * once in half a minute.
   */
  relist(): void
  state(): ReflectorState
  /** Time since the server last proved the store up to date (list, event, bookmark); Infinity before the first list. */
  ageMs(): number
}

const defaultTiming: ReflectorTiming = {
  backoff: requestBackoff,
  minWatchTimeoutSeconds: 300,
  idleTimeoutMs: 180_000,
  pageSize: 500,
}
/** A single 404 may come from a server that is still installing its CRDs, so it does not empty the store. */
const minNotFoundsForAbsent = 2
/** A watch that lived this long was healthy: the next failure restarts the backoff. */
const minHealthyWatchMs = 5_000
/** If one LIST does not help, the next one seldom does. */
const minRelistIntervalMs = 30_000
/** A watch that ends earlier by more than this was ended by a server that is stopping, or by a proxy in between. */
const earlyEndMs = 1_000

export function startReflector<T extends KubeObject>(
  transport: KubeTransport,
  options: ReflectorOptions<T>,
): Reflector<T> {
  const { clock, random, path, query, metadataOnly = false, transform = (object: T) => object } = options
  const { relistsAfterOverload = false, onChange, onFact, signal } = options
  const timing = { ...defaultTiming, ...options.timing }
  const isOneNamespace = path.includes('/namespaces/')
  const store = createStore<T>(({ metadata }) =>
    metadata.namespace === undefined || isOneNamespace ? metadata.name : `${metadata.namespace}/${metadata.name}`,
  )
  const prepareObject = (object: T): T => {
    delete (object.metadata as { managedFields?: unknown }).managedFields // fresh from JSON.parse, not shared
    return transform(object)
  }
  const initialSync = Promise.withResolvers<void>()
  initialSync.promise.catch(() => {}) // waiting for it is optional

  let state: ReflectorState = { state: 'unknown', sinceMs: clock.steadyMs() }
  let lastContactAtMs = -Infinity
  let resourceVersion: string | undefined
  let notFoundCount = 0
  let failures = 0
  let endWatch: (() => void) | undefined
  let relistAskedAtMs = -Infinity
  let consumerError: { readonly error: unknown } | undefined

  const setState = (next: ReflectorState, changes: readonly Change<T>[], isListed = false): void => {
    const isChanged = next.state !== state.state || 'lastError' in next !== 'lastError' in state || changes.length > 0
    state = next
    if (!isChanged) return
    try {
      onChange({ state, changes, isListed })
    } catch (error) {
      consumerError = { error } // a bug of the consumer must not be retried like an error of the server
      throw error
    }
  }
  const sinceMs = (kind: ReflectorState['state']): number => (state.state === kind ? state.sinceMs : clock.steadyMs())
  const markContact = (): void => {
    lastContactAtMs = clock.monotonicMs()
    failures = 0
  }
  const setSynced = (changes: readonly Change<T>[], isListed = false): void =>
    setState({ state: 'synced', sinceMs: sinceMs('synced') }, changes, isListed)

  const list = async (): Promise<void> => {
    const result = await listAll<T, T>(transport, path, {
      query,
      accept: metadataOnly ? metadataOnlyListAccept : undefined,
      signal,
      pageSize: timing.pageSize,
      transform: prepareObject,
    })
    resourceVersion = result.resourceVersion
    lastContactAtMs = clock.monotonicMs()
    notFoundCount = 0
    onFact?.({ fact: 'listed', count: result.items.length })
    setSynced(store.replaceAll(result.items), true)
    options.onListed?.(store.objects.values())
    initialSync.resolve()
  }

  const watch = async (from: string): Promise<void> => {
    const startedMs = clock.monotonicMs()
    const ending = new AbortController()
    endWatch = () =>
      ending.abort(new NoResponseError('the watch shows less than other answers', { mayHaveBeenSent: true }))
    const timeoutSeconds = Math.floor(timing.minWatchTimeoutSeconds * (1 + random.number()))
    const watchStream = watchEvents<T>(transport, {
      clock,
      path,
      query,
      accept: metadataOnly ? metadataOnlyAccept : undefined,
      resourceVersion: from,
      timeoutSeconds,
      idleTimeoutMs: timing.idleTimeoutMs,
      signal: AbortSignal.any([signal, ending.signal]),
      onOpen: () => {
        onFact?.({ fact: 'watching' })
        setSynced([])
      },
    })
    for await (const event of watchStream) {
      if (event.type === 'ERROR') throw apiErrorFromEvent(event.object)
      markContact()
      resourceVersion = event.object.metadata.resourceVersion
      if (event.type === 'BOOKMARK') continue
      const object = prepareObject(event.object)
      const changes = event.type === 'DELETED' ? store.delete(object) : store.set(object)
      if (changes.length > 0) setSynced(changes)
    }
    const leftMs = startedMs + timeoutSeconds * 1000 - clock.monotonicMs()
    if (leftMs > earlyEndMs) {
      const message = `the API server ended the watch ${Math.round(leftMs / 1000)} s early`
      throw new NoResponseError(message, { mayHaveBeenSent: true })
    }
    failures = 0
    onFact?.({ fact: 'watch-ended' })
  }

  const handleFailure = (during: 'list' | 'watch', error: unknown): number => {
    const lastError: LastError = {
      sinceMs: lastErrorOf(state)?.sinceMs ?? clock.steadyMs(),
      error,
    }
    if (during === 'watch' && (relistsAfterOverload || !isTooManyRequests(error))) resourceVersion = undefined
    if (!isNotFound(error)) notFoundCount = 0
    if (state.state === 'synced' && (during === 'watch' || isTransient(error))) {
      setState({ ...state, lastError }, [])
    } else if (isNotFound(error) && ++notFoundCount >= minNotFoundsForAbsent) {
      setState({ state: 'absent', sinceMs: sinceMs('absent') }, store.replaceAll([]))
      initialSync.resolve()
    } else {
      setState({ state: 'unknown', sinceMs: sinceMs('unknown'), lastError }, [])
    }
    const retryInMs = retryAfterMsOf(error) ?? backoffMs(++failures, timing.backoff, random.number())
    onFact?.({ fact: 'failed', during, error, willRelist: resourceVersion === undefined, retryInMs })
    return retryInMs
  }

  if (options.initial !== undefined) {
    store.replaceAll(options.initial.items)
    resourceVersion = options.initial.resourceVersion
    state = { state: 'synced', sinceMs: clock.steadyMs() }
    initialSync.resolve()
  }

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      const during = resourceVersion === undefined ? 'list' : 'watch'
      const startedMs = clock.monotonicMs()
      try {
        await (resourceVersion === undefined ? list() : watch(resourceVersion))
      } catch (error) {
        if (consumerError !== undefined) throw consumerError.error
        if (signal.aborted) break
        if (during === 'watch' && clock.monotonicMs() - startedMs > minHealthyWatchMs) failures = 0
        await sleep(clock, handleFailure(during, error), signal).catch(() => {}) // aborted: the loop ends
      }
    }
    initialSync.reject(signal.reason)
  }

  return {
    synced: initialSync.promise,
    ended: run(),
    store: store.objects,
    relist() {
      const nowMs = clock.monotonicMs()
      if (nowMs - relistAskedAtMs < minRelistIntervalMs) return
      relistAskedAtMs = nowMs
      resourceVersion = undefined // a watch that was refused for now would be asked for again after its pause
      endWatch?.()
    },
    state: () => state,
    ageMs: () => clock.monotonicMs() - lastContactAtMs,
  }
}
