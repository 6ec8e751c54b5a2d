/** What etcd is to an API server: objects in versions, one revision for all of them, a history until it is compacted. */
import type { Clock } from '../../../src/schemas/clock.ts'
import { adopt, without } from './json.ts'
import { resources, type Resource } from './resources.ts'
import { createVersion, type EventType, type SimObject, type Version } from './versions.ts'

export type Change = {
  readonly type: EventType
  readonly resource: Resource
  readonly revision: number
  /** Of a deletion: the last version, with the revision of the deletion. */
  readonly version: Version
  readonly previous: Version | undefined
  readonly atMs: number
}

/** A copy of everything, as a backup of etcd is. */
export type Backup = { readonly revision: number; readonly tables: ReadonlyMap<string, ReadonlyMap<string, Version>> }

export type Store = {
  revision(): number
  get(resource: Resource, key: string): Version | undefined
  /** In the order of their keys; changes with the store. */
  all(resource: Resource): readonly Version[]
  /** The same objects; the list is the same until one of them changes, and never changes itself. */
  objects(resource: Resource): readonly SimObject[]
  /** Writes the object as the next version of its key; undefined deletes it. */
  commit(resource: Resource, key: string, object: SimObject | undefined, cordonManager?: string): Change
  /** The changes after a revision; undefined if they are forgotten. */
  changesAfter(resource: Resource, revision: number): readonly Change[] | undefined
  /** The oldest revision from which a watch may continue. */
  oldest(resource: Resource): number
  /** The objects as they were at that monotonic time, as far back as the history reaches. */
  asOf(resource: Resource, atMs: number): { readonly revision: number; readonly versions: readonly Version[] }
  /** Forgets the history up to now. */
  compact(): void
  backUp(): Backup
  /** Puts back an older copy; the next revision is the one after the copy's, or after `revision`. */
  restore(backup: Backup, revision?: number): void
}

type Table = {
  objects: Map<string, Version>
  /** In the order of their keys. */
  sorted: Version[]
  /** Of `sorted`; undefined: not made yet. */
  list: readonly SimObject[] | undefined
  history: Change[]
  floor: number
}

export function createStore(options: {
  readonly clock: Clock
  /** Changes kept per resource. */
  readonly historyLength: number
  readonly onChange: (change: Change) => void
}): Store {
  const { clock, historyLength, onChange } = options
  const tables = new Map<string, Table>()
  for (const plural of resources.keys()) tables.set(plural, newTable())
  let revision = 1

  const tableOf = ({ plural }: Resource): Table => tables.get(plural) as Table

  const remember = (table: Table, change: Change): void => {
    table.history.push(change)
    if (table.history.length < 2 * historyLength) return
    const forgotten = table.history.splice(0, historyLength)
    table.floor = forgotten.at(-1)?.revision ?? table.floor
  }

  const all = (resource: Resource): readonly Version[] => tableOf(resource).sorted

  return {
    revision: () => revision,
    get: (resource, key) => tableOf(resource).objects.get(key),
    all,
    objects(resource) {
      const table = tableOf(resource)
      return (table.list ??= table.sorted.map(({ object }) => object))
    },
    commit(resource, key, object, cordonManager) {
      const table = tableOf(resource)
      const previous = table.objects.get(key)
      const stored = object ?? previous?.object
      if (stored === undefined) throw new Error(`there is no ${resource.plural} ${key} to delete`)
      const version = createVersion(key, stored, ++revision, cordonManager)
      const type = object === undefined ? 'DELETED' : previous === undefined ? 'ADDED' : 'MODIFIED'
      const at = placeOf(table.sorted, key)
      if (type === 'DELETED') {
        table.objects.delete(key)
        table.sorted.splice(at, 1)
      } else {
        table.objects.set(key, version)
        table.sorted.splice(at, previous === undefined ? 0 : 1, version)
      }
      table.list = undefined
      const change = { type, resource, revision, version, previous, atMs: clock.monotonicMs() } as const
      remember(table, change)
      onChange(change)
      return change
    },
    changesAfter(resource, from) {
      const { history, floor } = tableOf(resource)
      if (from < floor) return undefined
      let start = history.length
      while (start > 0 && (history[start - 1] as Change).revision > from) start--
      return history.slice(start)
    },
    oldest: (resource) => tableOf(resource).floor,
    asOf(resource, atMs) {
      const { history, objects } = tableOf(resource)
      const past = new Map(objects)
      let at = history.length
      while (at > 0 && (history[at - 1] as Change).atMs > atMs) {
        const { version, previous } = history[--at] as Change
        if (previous === undefined) past.delete(version.key)
        else past.set(version.key, previous)
      }
      const undone = history[at]
      if (undone === undefined) return { revision, versions: all(resource) }
      return { revision: undone.revision - 1, versions: [...past.values()].toSorted(byKey) }
    },
    compact() {
      for (const table of tables.values()) Object.assign(table, { history: [], floor: revision })
    },
    backUp: () => ({
      revision,
      tables: new Map([...tables].map(([plural, { objects }]) => [plural, new Map(objects)])),
    }),
    restore(backup, nextRevision = backup.revision) {
      revision = nextRevision
      for (const [plural, table] of tables) {
        const objects = new Map(backup.tables.get(plural))
        const sorted = [...objects.values()].toSorted(byKey)
        tables.set(plural, { ...table, objects, sorted, list: undefined, history: [], floor: revision })
      }
    },
  }
}

/** For requests with `dryRun=All`: answers as if it had written, and keeps everything as it is. */
export const rehearsedStore = (store: Store): Store => ({
  ...store,
  commit(resource, key, object, cordonManager) {
    const previous = store.get(resource, key)
    const stored = object ?? previous?.object
    if (stored === undefined) throw new Error(`there is no ${resource.plural} ${key} to delete`)
    const revision = previous?.revision ?? 0
    const version = unversioned(createVersion(key, stored, revision, cordonManager))
    return { type: 'MODIFIED', resource, revision, version, previous, atMs: 0 }
  },
})

/** What was never stored has no resourceVersion. */
function unversioned(version: Version): Version {
  if (version.revision > 0) return version
  const metadata = without(version.object.metadata, 'resourceVersion')
  return { ...version, object: adopt({ ...version.object, metadata }) as SimObject }
}

const newTable = (): Table => ({ objects: new Map(), sorted: [], list: undefined, history: [], floor: 1 })

const byKey = (a: Version, b: Version): number => (a.key < b.key ? -1 : 1)

/** Where the key is, or would be. */
function placeOf(sorted: readonly Version[], key: string): number {
  let from = 0
  let to = sorted.length
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((sorted[middle] as Version).key < key) from = middle + 1
    else to = middle
  }
  return from
}
