/** Spans of time for people. An unknown one, such as since an invalid date, is `unknown`. Pure. */

const units: readonly (readonly [seconds: number, letter: string])[] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'm'],
  [1, 's'],
]

/** As kubectl shows ages: two digits of the largest unit, with the next one beside one digit: `95s`, `3h12m`, `12h`. */
export const formatAge = (ms: number): string => inUnits(Math.floor(ms / 1000), (count) => count < 10)

/** In minutes, and below two of them in seconds: `45s`, `12m`, `3h5m`, `12h5m`, `2d4h`. */
export function durationText(ms: number): string {
  const seconds = Math.round(ms / 1000)
  return inUnits(seconds < 120 ? seconds : Math.round(seconds / 60) * 60, () => true)
}

/** For short spans: `3.2s` below ten seconds, then like ages. */
export const elapsed = (ms: number): string => (ms < 10_000 ? `${(Math.max(0, ms) / 1000).toFixed(1)}s` : formatAge(ms))

/** The largest unit, and the next one if it is not zero and `isFine` holds for the count of the largest. */
function inUnits(seconds: number, isFine: (count: number) => boolean): string {
  if (!Number.isFinite(seconds)) return 'unknown'
  if (seconds < 120) return `${Math.max(0, seconds)}s`
  const index = units.findIndex(([size]) => seconds >= size)
  const [size, letter] = units[index] ?? [1, 's']
  const [nextSize, nextLetter] = units[index + 1] ?? [1, 's']
  const count = Math.floor(seconds / size)
  const rest = Math.floor((seconds % size) / nextSize)
  return rest === 0 || !isFine(count) ? `${count}${letter}` : `${count}${letter}${rest}${nextLetter}`
}
