const unitsMs: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, μs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/**
 * Milliseconds of a duration as Kubernetes writes them (`30s`, `1m30s`, `1.5h`, `0`); undefined when the text is none or is
 * negative. Source of the syntax: Go's time.ParseDuration.
 */
export function durationMs(text: string): number | undefined {
  if (text === '0' || text === '+0') return 0
  if (!/^\+?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(text)) return undefined
  let sum = 0
  for (const [, number = '', unit = ''] of text.matchAll(/([\d.]+)([a-zµμ]+)/g)) sum += Number(number) * (unitsMs[unit] ?? 0)
  return sum
}
