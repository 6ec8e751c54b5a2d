/** One run of a simulated fleet: everything of a plan happens, and rules judge it. */
import { createHash } from 'node:crypto'
import type { Invariant, Watch } from '../../promises/promised.ts'
import { direct, type Director } from './director.ts'
import type { Phase } from './phase.ts'
import type { Plan } from './plan.ts'
import { endAtMs, settledMs } from './plan-time.ts'
import { unsettledReason } from './settled.ts'
import { eventText } from './trace.ts'
import { startWorld, type World } from './world.ts'
import type { Fact } from '../../promises/facts.ts'

export type Violation = { readonly rule: string; readonly message: string; readonly atMs: number }

export type RunResult = {
  readonly violation: Violation | undefined
  /** Actions that began: kind and phase. */
  readonly met: readonly { readonly kind: string; readonly phase: Phase | undefined }[]
  /** By name of the rule: how often it had something to judge. */
  readonly checks: Readonly<Record<string, number>>
  readonly virtualMs: number
  readonly steps: number
  /** Of all that happened; empty unless asked for. */
  readonly hash: string
  readonly trace: readonly string[]
}

export type RunOptions = {
  readonly invariants: readonly Invariant[]
  /** Default: neither. Both cost time. */
  readonly isTraced?: boolean
  readonly isHashed?: boolean
}

/** The same plan gives the same result. Rejects only with mistakes of the simulation itself. */
export async function runPlan(plan: Plan, options: RunOptions): Promise<RunResult> {
  const { invariants, isTraced = false, isHashed = false } = options
  const trace: string[] = []
  const hash = isHashed ? createHash('sha256') : undefined
  const met: { kind: string; phase: Phase | undefined }[] = []
  const watches: { readonly name: string; readonly watch: Watch }[] = []
  let violation: Violation | undefined
  let healedAtMs: number | undefined
  let steps = 0
  let director: Director | undefined
  let isEnded = false

  const killAll = (): void => {
    for (const { host } of world.hosts.values()) for (const process of host.processes()) process.kill()
  }

  const violate = (rule: string, message: string): void => {
    if (violation !== undefined) return
    const atMs = world.clock.monotonicMs()
    violation = { rule, message, atMs }
    // what follows is nobody's business, and an endless loop would hold up the end
    killAll()
    if (isTraced) trace.push(`${(atMs / 1_000).toFixed(3).padStart(8)} VIOLATION ${rule}: ${message}`)
  }

  const onEvent = (event: Fact, atMs: number): void => {
    if (violation !== undefined || isEnded) return
    if (isTraced || hash !== undefined) {
      const text = eventText(event, hash !== undefined)
      hash?.update(`${atMs} ${text}\n`)
      if (isTraced && text !== undefined) trace.push(`${(atMs / 1_000).toFixed(3).padStart(8)} ${text}`)
    }
    if (event.kind === 'host' && event.event.event === 'stepStarted') steps++
    if (event.kind === 'action' && event.what === 'begins') met.push({ kind: event.action.kind, phase: event.phase })
    else if (event.kind === 'action' && event.what === 'skipped' && event.phase !== undefined) met.pop()
    for (const { watch } of watches) watch.on?.(event, atMs)
    if (event.kind === 'host' || event.kind === 'commit') director?.look()
  }

  const world: World = startWorld(plan, { onEvent, onBroken: violate, faultsEndedAtMs: () => healedAtMs })
  for (const { name, watch } of invariants)
    watches.push({ name, watch: watch(world, (message) => violate(name, message)) })
  director = direct(world, () => (healedAtMs = world.clock.monotonicMs()))

  let unsettled: string | undefined
  let settledAtMs: number | undefined
  const isOver = (): boolean => violation !== undefined
  const pendingReason = (): string | undefined => {
    for (const { watch } of watches) {
      const pending = watch.pending?.()
      if (pending !== undefined) return pending
    }
    return undefined
  }
  while (!isOver()) {
    await world.clock.advance(1_000)
    const atMs = world.clock.monotonicMs()
    for (const { watch } of watches) if (violation === undefined) watch.tick?.(atMs)
    unsettled = unsettledReason(world) ?? pendingReason()
    settledAtMs = unsettled === undefined ? (settledAtMs ?? atMs) : undefined
    const isSettled = settledAtMs !== undefined && atMs - settledAtMs >= settledMs
    if (healedAtMs === undefined) {
      if (plan.healsEarly === true && isSettled && director.isIdle()) director.heal()
      settledAtMs = healedAtMs === undefined ? settledAtMs : undefined
      continue
    }
    if (isSettled) break
    if (atMs >= endAtMs) violate('settles', `${(endAtMs - healedAtMs) / 1_000} s after the last fault: ${unsettled}`)
  }
  const atMs = world.clock.monotonicMs()
  for (const { watch } of watches) if (violation === undefined) await watch.end?.(atMs)
  isEnded = true
  killAll() // Node holds the signals of those that live, and with them the whole fleet
  return {
    violation,
    met,
    checks: Object.fromEntries(watches.map(({ name, watch }) => [name, watch.checks()])),
    virtualMs: atMs,
    steps,
    hash: hash?.digest('hex') ?? '',
    trace,
  }
}
