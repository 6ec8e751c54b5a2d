/**
 * Our writes to an object that the watch has not shown yet. A write succeeds only over the last version that was
 * observed, so our own copy is newer than the watch's until the watch shows our last write or a later one.
 */
export type OwnWrites<T> = {
  /** Call it before a write, and its result with the written object. The watch may be faster than the response. */
  begin(): (written: T) => void
  /** The watch showed the object in this version. */
  observed(resourceVersion: string): void
  latest(): T | undefined
}

export function createOwnWrites<T extends { readonly metadata: { readonly resourceVersion: string } }>(): OwnWrites<T> {
  let latest: T | undefined
  let versions: string[] = []
  let observedCount = 0
  return {
    begin() {
      const observedBefore = observedCount
      return (written) => {
        if (observedCount !== observedBefore) return // the watch has already shown this write or a later one
        latest = written
        versions.push(written.metadata.resourceVersion)
      }
    },
    observed(resourceVersion) {
      const at = versions.indexOf(resourceVersion)
      if (at >= 0 && at < versions.length - 1) return // of an earlier write of ours; later ones are still in progress
      if (at < 0) observedCount++
      latest = undefined
      versions = []
    },
    latest: () => latest,
  }
}
