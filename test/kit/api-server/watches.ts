/** Open watches, and who of them has to hear of a change. */
import type { Clock, Random } from '../../../src/schemas/clock.ts'
import type { Location } from './resources.ts'
import { formOf, type SimRequest } from './request.ts'
import { expired } from './refusals.ts'
import { fieldAt, type Pin, selectionOf, type Selection } from './selectors.ts'
import type { Change, Store } from './store.ts'
import { createStream, type SimStream } from './stream.ts'
import { eventLine, type EventType, type Form, leavingAt, type Version } from './versions.ts'

export type Watch = {
  readonly client: string
  readonly location: Location
  readonly stream: SimStream
  /** Events are written this late. */
  delayMs: number
}

type OpenWatch = Watch & {
  readonly selection: Selection
  readonly form: Form
  /** Changes up to this one are not sent: it may lie in the future. */
  readonly afterRevision: number
  readonly bucket: string
}

export type Watches = {
  open(location: Location, request: SimRequest, delayMs: number): Watch
  dispatch(change: Change): void
  /** Ends a watch with an ERROR event, as the server does with one that it cannot continue. */
  expire(watch: Watch): void
  readonly all: () => readonly Watch[]
}

/** As the real server sends them; a real one leaves out those of the version from which the watch began. */
const bookmarkIntervalMs = 60_000
const bookmarkBeforeEndMs = 2_000
const minTimeoutMs = 30 * 60_000

export function createWatches(store: Store, clock: Clock, random: Random): Watches {
  /** By collection and, where the query pins a field or a label to one value, by that value. */
  const buckets = new Map<string, Set<OpenWatch>>()

  const send = (watch: Watch, line: Uint8Array): void => {
    if (watch.delayMs === 0) return watch.stream.write(line)
    clock.startTimer(watch.delayMs, () => watch.stream.write(line), { isBackground: true })
  }

  const sendChange = (watch: OpenWatch, { type, version, previous, revision }: Change): void => {
    const { selection, form, location, afterRevision } = watch
    if (revision <= afterRevision) return
    const isIn = (one: Version | undefined): boolean =>
      one !== undefined &&
      (location.namespace === '' || one.object.metadata.namespace === location.namespace) &&
      selection.matches(one.object)
    const isNow = type !== 'DELETED' && isIn(version)
    const wasBefore = isIn(previous)
    if (!isNow && !wasBefore) return
    if (isNow) return send(watch, eventLine(version, wasBefore ? 'MODIFIED' : 'ADDED', form))
    const left = type === 'DELETED' || previous === undefined ? version : leavingAt(previous, revision)
    send(watch, eventLine(left, 'DELETED', form))
  }

  const expire = (watch: Watch, asked = 0): void => {
    const { body } = expired(`too old resource version: ${asked} (${store.oldest(watch.location.resource)})`).answer
    watch.stream.write(Buffer.from(`${JSON.stringify({ type: 'ERROR', object: body })}\n`))
    watch.stream.end()
  }

  const begin = (watch: OpenWatch, resourceVersion: string): void => {
    const { location } = watch
    if (resourceVersion === '' || resourceVersion === '0') {
      for (const version of store.all(location.resource)) {
        const change = { resource: location.resource, revision: version.revision, version, atMs: 0 } as const
        sendChange(
          { ...watch, afterRevision: 0 },
          { ...change, type: 'ADDED' satisfies EventType, previous: undefined },
        )
      }
      return
    }
    const missed = store.changesAfter(location.resource, Number(resourceVersion))
    if (missed === undefined) return expire(watch, Number(resourceVersion))
    for (const change of missed) sendChange(watch, change)
  }

  const keepAlive = (watch: OpenWatch, query: SimRequest['query']): void => {
    const timeoutMs = Number(query['timeoutSeconds'] ?? 0) * 1000 || minTimeoutMs * (1 + random.number())
    const cancelTimeout = clock.startTimer(timeoutMs, () => watch.stream.end(), { isBackground: true })
    const deadlineMs = clock.monotonicMs() + timeoutMs
    let cancelBookmark: (() => void) | undefined
    const scheduleBookmark = (): void => {
      const lastAtMs = deadlineMs - bookmarkBeforeEndMs
      const inMs = Math.min(bookmarkIntervalMs, lastAtMs - clock.monotonicMs())
      if (inMs > 0) cancelBookmark = clock.startTimer(inMs, bookmark, { isBackground: true })
    }
    const bookmark = (): void => {
      const revision = store.revision()
      if (revision >= watch.afterRevision) send(watch, bookmarkLine(watch, revision))
      scheduleBookmark()
    }
    if (query['allowWatchBookmarks'] === 'true' && watch.location.resource.hasBookmarks) scheduleBookmark()
    watch.stream.onClosed(() => {
      cancelTimeout()
      cancelBookmark?.()
      const bucket = buckets.get(watch.bucket)
      bucket?.delete(watch)
      if (bucket?.size === 0) buckets.delete(watch.bucket)
    })
  }

  return {
    open(location, request, delayMs) {
      const { client, query } = request
      const selection = selectionOf(location.resource, query)
      const { resourceVersion = '' } = query
      const watch: OpenWatch = {
        client,
        location,
        selection,
        form: formOf(request),
        stream: createStream(),
        delayMs,
        afterRevision: Number(resourceVersion) || 0,
        bucket: bucketOf(location.resource.plural, selection.pinned),
      }
      const bucket = buckets.get(watch.bucket) ?? new Set()
      buckets.set(watch.bucket, bucket.add(watch))
      keepAlive(watch, query)
      begin(watch, resourceVersion)
      return watch
    },
    dispatch(change) {
      const { resource, version, previous } = change
      const names = new Set([bucketOf(resource.plural, undefined)])
      for (const one of [version, previous]) {
        if (one === undefined) continue
        for (const field of ['metadata.name', 'spec.nodeName'] as const)
          names.add(bucketOf(resource.plural, { field, value: fieldAt(one.object, field) }))
        for (const [label, value] of Object.entries(one.object.metadata.labels ?? {}))
          names.add(bucketOf(resource.plural, { field: `label ${label}`, value }))
      }
      for (const name of names) for (const watch of buckets.get(name) ?? []) sendChange(watch, change)
    },
    expire,
    all: () => [...buckets.values()].flatMap((bucket) => [...bucket]),
  }
}

const bucketOf = (plural: string, pinned: Pin | undefined): string =>
  pinned === undefined ? plural : `${plural} ${pinned.field}=${pinned.value}`

function bookmarkLine({ form, location: { resource } }: OpenWatch, revision: number): Uint8Array {
  const metadata = { resourceVersion: String(revision), creationTimestamp: null }
  const { kind, apiVersion } =
    form === 'metadata' ? { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' } : resource
  return Buffer.from(`${JSON.stringify({ type: 'BOOKMARK', object: { kind, apiVersion, metadata } })}\n`)
}
