/** Rules about minutes look at the whole fleet every few seconds only. */

const lookIntervalMs = 5_000

/** True for the first second of each interval. */
export function everyFewSeconds(): (atMs: number) => boolean {
  let nextMs = 0
  return (atMs) => {
    if (atMs < nextMs) return false
    nextMs = atMs + lookIntervalMs
    return true
  }
}
