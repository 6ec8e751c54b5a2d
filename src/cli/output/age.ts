const units: readonly (readonly [seconds: number, letter: string])[] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'm'],
  [1, 's'],
]

/** A duration as kubectl shows ages: two digits of the largest unit, with the next one beside one digit: `95s`, `3h12m`. */
export function formatAge(ms: number): string {
  if (Number.isNaN(ms)) return 'unknown'
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 120) return `${seconds}s`
  const index = units.findIndex(([size]) => seconds >= size)
  const [size, letter] = units[index] ?? [1, 's']
  const [nextSize, nextLetter] = units[index + 1] ?? [1, 's']
  const rest = Math.floor((seconds % size) / nextSize)
  const whole = Math.floor(seconds / size)
  return whole >= 10 || rest === 0 ? `${whole}${letter}` : `${whole}${letter}${rest}${nextLetter}`
}
