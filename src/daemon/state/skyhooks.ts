import type { KubeObject } from '../../kube/objects.ts'
import { isNotFound } from '../../kube/errors.ts'
import { type Reflector, type ReflectorFact, type ReflectorState, startReflector } from '../../kube/reflector.ts'
import { exponentialBackoff, abortableSleep } from '../../kube/retry.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { type Known, type SkyhookView, known, unknown } from '../../stages/model/snapshot.ts'

export type SkyhookSource = { readonly synced: Promise<void>; ageMs(): number }

/**
 * Follows all Skyhooks by their metadata alone, and reads an object when its generation or annotations change: the
 * status of a large rollout, which changes every second, then never travels to the nodes.
 * /
 */
export function followSkyhooks(
  transport: KubeTransport,
  options: {
    /** Spreads the reads of a fleet after one edit, in ms (design: up to min(5 s, 1 ms × agents)). */
    readonly readDelayMs: () => number
    readonly onSkyhooks: (skyhooks: Known<readonly SkyhookView[]>) => void
    readonly onFact: (fact: ReflectorFact) => void
    readonly onReadFailed: (name: string, error: unknown) => void
    readonly signal: AbortSignal
  },
): SkyhookSource {
  const objects = new Map<string, Skyhook>()
  const readsInFlight = new Set<string>()
  const backoff = exponentialBackoff()

  const reflector: Reflector<KubeObject> = startReflector<KubeObject>(transport, {
    path: skyhooksPath,
    metadataOnly: true,
    onChange: ({ changes }) => {
      for (const { type, key } of changes) if (type === 'deleted') objects.delete(key)
      refresh()
    },
    onFact: options.onFact,
    signal: options.signal,
  })

  /** Reads what is missing or old, then tells what is known. */
  function refresh(): void {
    for (const [name, { metadata }] of reflector.store) {
      if (isCurrent(objects.get(name), metadata) || readsInFlight.has(name)) continue
      readsInFlight.add(name)
      void read(name).finally(() => {
        readsInFlight.delete(name)
        refresh()
      })
    }
    options.onSkyhooks(view(reflector.state()))
  }

  async function read(name: string): Promise<void> {
    await abortableSleep(options.readDelayMs(), options.signal).catch(() => undefined)
    for (let attempt = 0; !options.signal.aborted; attempt++) {
      const metadata = reflector.store.get(name)?.metadata
      if (!metadata || isCurrent(objects.get(name), metadata)) return
      try {
        // not older than what the watch showed: an API server that lags behind the one we watch waits until it has it
        const query = { resourceVersion: metadata.resourceVersion }
        const { status: _, ...object } = await transport.json<Skyhook>('GET', `${skyhooksPath}/${name}`, {
          query,
          signal: options.signal,
        })
        objects.set(name, object)
        return
      } catch (error) {
        if (options.signal.aborted || isNotFound(error)) return // the watch will say that it is gone
        options.onReadFailed(name, error)
        await abortableSleep(backoff(attempt), options.signal).catch(() => undefined)
      }
    }
  }

  function view(state: ReflectorState): Known<readonly SkyhookView[]> {
    if (state.state === 'unknown') return unknown('the Skyhooks could not be listed yet')
    const views: SkyhookView[] = []
    for (const [name, { metadata }] of reflector.store) {
      const object = objects.get(name)
      if (!object) return unknown(`Skyhook ${name} has not been read yet`) // its priority is unknown, and with it the order of all
      views.push({ metadata, spec: object.spec ?? {}, stale: !isCurrent(object, metadata) })
    }
    return known(views)
  }

  return { synced: reflector.synced, ageMs: () => reflector.ageMs() }
}

/** What was read is the same object at the generation of the metadata seen. Annotations are taken from the metadata. */
const isCurrent = (object: Skyhook | undefined, metadata: KubeObject['metadata']): boolean =>
  object !== undefined &&
  object.metadata.uid === metadata.uid &&
  (object.metadata.generation ?? 0) >= (metadata.generation ?? 0)
