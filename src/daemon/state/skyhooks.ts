import { isDeepStrictEqual } from 'node:util'
import type { KubeObject } from '../../kube/objects.ts'
import { isNotFound } from '../../kube/errors.ts'
import { type Reflector, type ReflectorFact, type ReflectorState, startReflector } from '../../kube/reflector.ts'
import { requestBackoff } from '../../kube/retry.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import { backoffMs } from '../../schemas/backoff.ts'
import { type Clock, type Random, sleep } from '../../schemas/clock.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { type Known, type SkyhookView, known, unknown } from '../../stages/model/snapshot.ts'

export type SkyhookSource = {
  readonly synced: Promise<void>
  ageMs(): number
  /** Unknown until every Skyhook was read: the order depends on every priority. */
  readonly current: () => Known<readonly SkyhookView[]>
}

type SkyhookObject = Pick<Skyhook, 'metadata' | 'spec'>

/**
 * Follows only the metadata of all Skyhooks, and reads an object when its generation or annotations change, so that the
 * status of a large rollout, which changes every second, never travels to the nodes.
 */
export function followSkyhooks(
  transport: KubeTransport,
  options: {
    /** Spreads the reads of a fleet after one edit, in ms (design: up to min(5 s, 1 ms × agents)). */
    readonly readDelayMs: () => number
    readonly clock: Clock
    readonly random: Random
    readonly wake: () => void
    readonly onFact: (fact: ReflectorFact) => void
    readonly onReadFailed: (name: string, error: unknown) => void
    /** It was read, or is gone. */
    readonly onReadEnded: (name: string) => void
    readonly signal: AbortSignal
  },
): SkyhookSource {
  const { clock, random, signal } = options
  const objects = new Map<string, SkyhookObject>()
  const readsInFlight = new Set<string>()
  let current: Known<readonly SkyhookView[]> = unknown('the Skyhooks are not listed yet')

  const reflector: Reflector<KubeObject> = startReflector<KubeObject>(transport, {
    clock,
    random,
    path: skyhooksPath,
    metadataOnly: true,
    onChange: ({ changes }) => {
      for (const { type, key } of changes) if (type === 'deleted') objects.delete(key)
      refresh()
    },
    onFact: options.onFact,
    signal,
  })

  /** Reads missing and outdated objects, then reports what is known. */
  function refresh(): void {
    if (signal.aborted) return
    for (const [name, { metadata }] of reflector.store) {
      if (isCurrent(objects.get(name), metadata) || readsInFlight.has(name)) continue
      readsInFlight.add(name)
      void read(name).finally(() => {
        readsInFlight.delete(name)
        options.onReadEnded(name)
        refresh()
      })
    }
    const next = view(reflector.state())
    if (isDeepStrictEqual(next, current)) return // a new version with another status
    current = next
    options.wake()
  }

  async function read(name: string): Promise<void> {
    await sleep(clock, options.readDelayMs(), signal).catch(() => undefined)
    for (let failures = 1; !signal.aborted; failures++) {
      const metadata = reflector.store.get(name)?.metadata
      if (!metadata || isCurrent(objects.get(name), metadata)) return
      try {
        // at least as new as the watch: an API server that lags behind waits until it has that version
        const query = { resourceVersion: metadata.resourceVersion }
        const path = `${skyhooksPath}/${name}`
        const { metadata: readMetadata, spec } = await transport.json<Skyhook>('GET', path, { query, signal })
        objects.set(name, { metadata: readMetadata, spec }) // the status is large and not needed
        return
      } catch (error) {
        if (signal.aborted) return
        if (!isNotFound(error) || failures > 1) options.onReadFailed(name, error) // the watch shows a deletion soon
        await sleep(clock, backoffMs(failures, requestBackoff, random.number()), signal).catch(() => undefined)
      }
    }
  }

  function view(state: ReflectorState): Known<readonly SkyhookView[]> {
    if (state.state === 'unknown') return unknown('the Skyhooks are not listed yet')
    const views: SkyhookView[] = []
    for (const [name, { metadata }] of reflector.store) {
      const object = objects.get(name)
      // without its priority the order of all is unknown
      if (!object) return unknown(`Skyhook ${name} has not been read yet`)
      const { resourceVersion } = object.metadata // that of the spec: each write of the status brings a new one
      views.push({
        metadata: { ...metadata, resourceVersion },
        spec: object.spec ?? {},
        stale: !isCurrent(object, metadata),
      })
    }
    return known(views)
  }

  return { synced: reflector.synced, ageMs: () => reflector.ageMs(), current: () => current }
}

/** True if the object was read at the generation of the metadata. Annotations are taken from the metadata. */
const isCurrent = (object: SkyhookObject | undefined, metadata: KubeObject['metadata']): boolean =>
  object !== undefined &&
  object.metadata.uid === metadata.uid &&
  (object.metadata.generation ?? 0) >= (metadata.generation ?? 0)
