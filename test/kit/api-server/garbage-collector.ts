/** The garbage collector of a cluster: objects whose owners are gone are deleted, some time later. */
import type { Clock, Random } from '../../../src/schemas/clock.ts'
import { resources } from './resources.ts'
import type { SimulatedApiServer } from './server.ts'
import type { SimObject } from './versions.ts'

export type GarbageCollectorOptions = {
  readonly clock: Clock
  readonly random: Random
  /** From the change that makes an object garbage to its deletion; default 50 ms to 2 s. */
  readonly delayMs?: (random: Random) => number
}

const retryMs = 1_000

/** Returns a function that stops it. Of several owners, all must be gone; dangling references are left as they are. */
export function startGarbageCollector(server: SimulatedApiServer, options: GarbageCollectorOptions): () => void {
  const { clock, random, delayMs = (random) => 50 + 1_950 * random.number() } = options
  /** Owned objects, by the uids of their owners. */
  const owned = new Map<string, Map<string, string>>()
  const cancels = new Set<() => void>()

  const hasOwner = (object: SimObject): boolean =>
    (object.metadata.ownerReferences ?? []).some(({ kind, name, uid }) => {
      const owner = [...resources.values()].find((one) => one.kind === kind)
      if (owner === undefined) return true // not simulated: it may exist
      const namespace = owner.isNamespaced ? object.metadata.namespace : undefined
      return server.object(owner.plural, namespace, name)?.metadata.uid === uid
    })

  const later = (ms: number, act: () => void): void => {
    const cancel = clock.startTimer(
      ms,
      () => {
        cancels.delete(cancel)
        act()
      },
      { isBackground: true },
    )
    cancels.add(cancel)
  }

  const collect = (plural: string, uid: string): void => {
    if (server.isAway()) return later(retryMs, () => collect(plural, uid))
    const object = server.objects(plural).find(({ metadata }) => metadata.uid === uid)
    if (object === undefined || hasOwner(object)) return
    const { namespace, name } = object.metadata
    const folder = namespace === undefined ? plural : `namespaces/${namespace}/${plural}`
    const root = object.apiVersion === 'v1' ? '/api/v1' : `/apis/${object.apiVersion}`
    const request = { client: 'garbage-collector', manager: 'garbage-collector', query: {} }
    const body = { preconditions: { uid } }
    const { code } = server.handle({ ...request, method: 'DELETE', path: `${root}/${folder}/${name}`, body })
    if (code >= 500 || code === 429) later(retryMs, () => collect(plural, uid))
  }

  const check = (plural: string, object: SimObject): void => {
    const { uid, ownerReferences = [] } = object.metadata
    if (ownerReferences.length === 0) return
    for (const owner of ownerReferences) {
      const siblings = owned.get(owner.uid) ?? new Map<string, string>()
      owned.set(owner.uid, siblings.set(uid, plural))
    }
    if (!hasOwner(object)) later(delayMs(random), () => collect(plural, uid))
  }

  for (const plural of resources.keys()) for (const object of server.objects(plural)) check(plural, object)
  const stopObserving = server.observe({
    committed({ type, resource, version: { object } }) {
      if (type === 'ADDED') return check(resource.plural, object)
      if (type !== 'DELETED') return
      for (const [uid, plural] of owned.get(object.metadata.uid) ?? [])
        later(delayMs(random), () => collect(plural, uid))
      owned.delete(object.metadata.uid)
      for (const owner of object.metadata.ownerReferences ?? []) owned.get(owner.uid)?.delete(object.metadata.uid)
    },
    // a restored store may lack owners, or have garbage again
    restored() {
      for (const plural of resources.keys()) for (const object of server.objects(plural)) check(plural, object)
    },
  })
  return () => {
    stopObserving()
    for (const cancel of cancels) cancel()
  }
}
