/**
 * What we wrote to one object and the watch has not shown yet. A write succeeds only over the version that was seen last, so until the
 * watch shows our last write, or anything after it, our own copy is newer than the watch's.
 */
export type OwnWrites<T> = {
  wrote(object: T): void
  /** The watch showed the object in this version. */
  seen(resourceVersion: string): void
  latest(): T | undefined
}

export function createOwnWrites<T extends { readonly metadata: { readonly resourceVersion: string } }>(): OwnWrites<T> {
  let latest: T | undefined
  let versions: string[] = []
  return {
    wrote(object) {
      latest = object
      versions.push(object.metadata.resourceVersion)
    },
    seen(resourceVersion) {
      const at = versions.indexOf(resourceVersion)
      if (at >= 0 && at < versions.length - 1) return // of an earlier write of ours: later ones are still under way
      latest = undefined
      versions = []
    },
    latest: () => latest,
  }
}
