/** Counts of a campaign: how often each fault and edit met each phase, how often each rule judged, what failed. */
import { actionKinds, editKinds, faultKinds } from '../../kit/fleet/action-kinds.ts'
import { type Phase, phases } from '../../kit/fleet/phase.ts'
import type { RunResult } from '../../kit/fleet/run-plan.ts'
import { pairs } from './steering.ts'

export type Counts = {
  readonly runs: number
  readonly virtualMs: number
  readonly steps: number
  /** By kind, and by `kind in phase`. */
  readonly met: Readonly<Record<string, number>>
  /** By rule. */
  readonly checks: Readonly<Record<string, number>>
}

export type Tally = {
  add(seed: number, result: RunResult): void
  readonly failures: ReadonlyMap<number, NonNullable<RunResult['violation']>>
  readonly runs: () => number
  /** Cells that are possible and were met fewer than so many times, as `kind in phase`. */
  below(count: number): readonly string[]
  text(): string
  counts(): Counts
}

/** Goes on from `before`. */
export function createTally(before?: Counts): Tally {
  const met = new Map<string, number>(Object.entries(before?.met ?? {}))
  const checks = new Map<string, number>(Object.entries(before?.checks ?? {}))
  const failures = new Map<number, NonNullable<RunResult['violation']>>()
  let { runs, virtualMs, steps } = before ?? { runs: 0, virtualMs: 0, steps: 0 }

  const count = (map: Map<string, number>, key: string, by = 1): void => void map.set(key, (map.get(key) ?? 0) + by)
  const cell = (kind: string, phase: Phase): string => {
    const isImpossible = actionKinds[kind]?.impossible?.[phase] !== undefined
    return isImpossible ? '–' : String(met.get(`${kind} in ${phase}`) ?? 0)
  }
  const table = (kinds: readonly string[]): string[] =>
    kinds.map((kind) => {
      const cells = phases.map((phase) => cell(kind, phase).padStart(Math.max(6, phase.length + 1)))
      return `${kind.padEnd(26)}${String(met.get(kind) ?? 0).padStart(7)}${cells.join('')}`
    })
  const columns = phases.map((phase) => phase.padStart(Math.max(6, phase.length + 1))).join('')
  const heading = `${''.padEnd(26)}${'all'.padStart(7)}${columns}`

  return {
    failures,
    runs: () => runs,
    add(seed, result) {
      runs++
      virtualMs += result.virtualMs
      steps += result.steps
      for (const { kind, phase } of result.met) {
        count(met, kind)
        if (phase !== undefined) count(met, `${kind} in ${phase}`)
      }
      for (const [rule, times] of Object.entries(result.checks)) count(checks, rule, times)
      if (result.violation !== undefined) failures.set(seed, result.violation)
    },
    below: (count) =>
      pairs.map(({ kind, phase }) => `${kind} in ${phase}`).filter((pair) => (met.get(pair) ?? 0) < count),
    counts: () => ({ runs, virtualMs, steps, met: Object.fromEntries(met), checks: Object.fromEntries(checks) }),
    text() {
      const rules = new Map<string, number>()
      for (const { rule } of failures.values()) count(rules, rule)
      const names = new Set([...checks.keys(), ...rules.keys()])
      return [
        `${runs} runs, ${Math.round(virtualMs / 60_000)} virtual minutes, ${steps} steps`,
        '',
        `faults${heading.slice(6)}`,
        ...table(Object.keys(faultKinds)),
        '',
        `edits${heading.slice(5)}`,
        ...table(Object.keys(editKinds)),
        '',
        'rule                        judged   violated',
        ...[...names].map((rule) => {
          const judged = String(checks.get(rule) ?? '').padStart(12)
          return `${rule.padEnd(22)}${judged}${String(rules.get(rule) ?? 0).padStart(11)}`
        }),
      ].join('\n')
    },
  }
}
