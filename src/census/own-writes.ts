/**
 * What we wrote to one object and the watch has not shown yet. A write succeeds only over the version that was seen
 * last, so until the watch shows our last write, or anything after it, our own copy is newer than the watch's.
 */
export type OwnWrites<T> = {
  /** Call before a write, and what it returns with what was written. The watch may be faster than the answer. */
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
        if (observedCount !== observedBefore) return // the watch has shown this write, or what somebody wrote over it, already
        latest = written
        versions.push(written.metadata.resourceVersion)
      }
    },
    observed(resourceVersion) {
      const at = versions.indexOf(resourceVersion)
      if (at >= 0 && at < versions.length - 1) return // of an earlier write of ours: later ones are still under way
      if (at < 0) observedCount++
      latest = undefined
      versions = []
    },
    latest: () => latest,
  }
}
