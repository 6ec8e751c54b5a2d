/** RFC 3339 in UTC with whole seconds, the form of Kubernetes' `metav1.Time`. */
export const formatTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, -'.000Z'.length)}Z`

const unitsMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}

/** A Go duration (`90s`, `1h30m`, `1.5m`) in milliseconds; undefined for other text. */
export function durationMs(text: string): number | undefined {
  if (text === '0') return 0
  if (!/^[+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)/.test(text)) return undefined
  let rest = text.replace(/^[+]/, '')
  let sum = 0
  while (rest !== '') {
    const match = /^([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)/.exec(rest)
    const [whole, number, unit] = match ?? []
    if (whole === undefined || number === undefined || unit === undefined) return undefined
    sum += Number(number) * (unitsMs[unit] ?? 0)
    rest = rest.slice(whole.length)
  }
  return sum
}

/** Milliseconds as whole minutes or seconds, which `durationMs` reads back. */
export const formatDuration = (ms: number): string =>
  ms % 60_000 === 0 && ms > 0 ? `${ms / 60_000}m` : `${ms / 1000}s`
