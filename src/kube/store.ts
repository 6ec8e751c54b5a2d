import { isDeepStrictEqual } from 'node:util'
import type { KubeObject } from './objects.ts'

export type Change<T extends KubeObject> = {
  readonly type: 'added' | 'modified' | 'deleted'
  readonly key: string
  readonly object: T
}

/**
 * The last known objects of one collection, by name (by `namespace/name` where the collection spans namespaces).
 * Identity is the uid: an object that was deleted and created again under its name is a deletion and an addition, never
 * a modification.
 */
export type Store<T extends KubeObject> = {
  readonly objects: ReadonlyMap<string, T>
  /**
   * Makes the store equal to a complete list and returns the differences. Objects missing from the list were deleted
   * unseen. An equal version proves nothing here: a restored etcd counts its versions a second time.
   */
  replaceAll(items: readonly T[]): Change<T>[]
  set(object: T): Change<T>[]
  delete(object: T): Change<T>[]
}

/** The items of most lists come without type. */
const isSameContent = (a: KubeObject, b: KubeObject): boolean =>
  isDeepStrictEqual({ ...a, apiVersion: undefined, kind: undefined }, { ...b, apiVersion: undefined, kind: undefined })

export function createStore<T extends KubeObject>(keyOf: (object: T) => string): Store<T> {
  const objects = new Map<string, T>()

  const isSameVersion = (a: T, b: T): boolean =>
    a.metadata.uid === b.metadata.uid && a.metadata.resourceVersion === b.metadata.resourceVersion

  const set = (object: T, isEqual = isSameVersion): Change<T>[] => {
    const key = keyOf(object)
    const previous = objects.get(key)
    if (previous !== undefined && isEqual(previous, object)) return []
    objects.set(key, object)
    if (previous === undefined) return [{ type: 'added', key, object }]
    if (previous.metadata.uid === object.metadata.uid) return [{ type: 'modified', key, object }]
    return [
      { type: 'deleted', key, object: previous },
      { type: 'added', key, object },
    ]
  }

  return {
    objects,
    set: (object) => set(object),
    replaceAll(items) {
      const listedKeys = new Set(items.map(keyOf))
      const changes: Change<T>[] = []
      for (const [key, object] of objects) {
        if (listedKeys.has(key)) continue
        objects.delete(key)
        changes.push({ type: 'deleted', key, object })
      }
      for (const object of items) changes.push(...set(object, isSameContent))
      return changes
    },
    delete(object) {
      const key = keyOf(object)
      if (objects.get(key)?.metadata.uid !== object.metadata.uid) return [] // of an earlier object of this name
      objects.delete(key)
      return [{ type: 'deleted', key, object }]
    },
  }
}
