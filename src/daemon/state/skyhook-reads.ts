import type { KubeObject } from '../../kube/objects.ts'
import type { ConfigUpdates } from '../../schemas/config-updates.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'

export type SkyhookObject = Pick<Skyhook, 'metadata' | 'spec'> & { readonly configUpdates?: ConfigUpdates }
type Metadata = KubeObject['metadata']

/**
 * The Skyhooks that were read, and whether they are still current in the API server. A generation identifies a spec
 * only until etcd is restored: a restored etcd counts from an older generation, and reaches the same number with
 * another spec. A restore breaks the watches. Therefore each LIST puts an object in doubt, unless it shows the version
 * that was read, or a version with the same generation that the watch has shown since.
 */
export type SkyhookReads = {
  get(name: string): SkyhookObject | undefined
  /** Whether the known spec is that of the metadata, or newer. Takes annotations from the metadata. */
  isCurrent(metadata: Metadata): boolean
  /**
   * Call it before a read with the metadata of the watch, and call its result with the answer. The answer to a read
   * from before a LIST is in doubt, too.
   */
  begin(shown: Metadata): (object: SkyhookObject) => void
  watched(metadata: Metadata): void
  /** Called with all objects after a complete LIST. */
  listed(objects: Iterable<KubeObject>): void
  deleted(name: string): void
}

type Entry = {
  readonly object: SkyhookObject
  /** The latest version with this spec. */
  readonly version: string
  /** The last generation in the watch. */
  readonly shownGeneration: number
  readonly isInDoubt: boolean
}

const generationOf = ({ generation }: { readonly generation?: number | undefined }): number => generation ?? 0

export function createSkyhookReads(): SkyhookReads {
  const entries = new Map<string, Entry>()
  let doubts = 0

  function putInDoubt(name: string, entry: Entry): void {
    entries.set(name, { ...entry, shownGeneration: 0, isInDoubt: true })
  }

  return {
    get: (name) => entries.get(name)?.object,

    isCurrent(metadata) {
      const entry = entries.get(metadata.name)
      return (
        entry !== undefined &&
        !entry.isInDoubt &&
        entry.object.metadata.uid === metadata.uid &&
        generationOf(entry.object.metadata) >= generationOf(metadata)
      )
    },

    begin(shown) {
      const doubtsBefore = doubts
      return (object) => {
        const { name, resourceVersion: version } = object.metadata
        const shownGeneration = Math.max(generationOf(shown), entries.get(name)?.shownGeneration ?? 0)
        entries.set(name, { object, version, shownGeneration, isInDoubt: doubts !== doubtsBefore })
      }
    },

    watched(metadata) {
      const { name, uid, resourceVersion } = metadata
      const entry = entries.get(name)
      if (entry?.object.metadata.uid !== uid) return
      const shownGeneration = generationOf(metadata)
      if (shownGeneration < entry.shownGeneration) {
        doubts++
        putInDoubt(name, entry)
      } else {
        const isOfSpec = shownGeneration === generationOf(entry.object.metadata)
        entries.set(name, { ...entry, shownGeneration, ...(isOfSpec && { version: resourceVersion }) })
      }
    },

    listed(objects) {
      doubts++
      for (const { metadata } of objects) {
        const entry = entries.get(metadata.name)
        if (entry && entry.version !== metadata.resourceVersion) putInDoubt(metadata.name, entry)
      }
    },

    deleted: (name) => void entries.delete(name),
  }
}
