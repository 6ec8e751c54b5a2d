/** The state of each rollout, from the fleet view. Pure. */
import { limitOf } from '../../../lease/budget/budget.ts'
import { labelKeys } from '../../../lease/names.ts'
import type { Limit } from '../../../lease/rule.ts'
import type { Slot } from '../../../lease/slot.ts'
import { disableKey, pauseKey } from '../../../schemas/annotations.ts'
import { type ReasonName, reasons } from '../../../schemas/catalogue/reasons.ts'
import { isFailure } from '../../../schemas/catalogue/reason.ts'
import { isObject } from '../../../schemas/json.ts'
import type { NodeStatus, Skyhook } from '../../../schemas/skyhook.ts'
import { known, type Known } from '../../../stages/model/snapshot.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { mapped } from '../../fleet/fleet-view/readable.ts'
import { knownBudget } from '../../fleet/fleet-view/settings.ts'
import { skyhookViewOf, finishedWork } from '../../fleet/fleet-view/skyhook-view.ts'
import {
  compared,
  type FinishedWork,
  type Pace,
  type PackageVersions,
  type RunningStep,
} from '../../base/output/rollout-texts.ts'
import {
  type AgentStates,
  agentStates,
  type ClosedNodes,
  closedNodes,
  type NodeFact,
  nodeFacts,
  reasonOf,
} from './node-facts.ts'
import type { NodeRow } from './node-report.ts'
import { packageVersions } from './package-versions.ts'

export type SkyhookStatus = {
  readonly name: string
  readonly generation: number
  readonly isPaused: boolean
  readonly isDisabled: boolean
  readonly isDeleting: boolean
  /** Why it does not continue by itself; undefined while it does, or is complete. */
  readonly stalled: string | undefined
  /** In ms since 1970; absent if unknown. */
  readonly stalledSinceMs?: number
  /** Nodes that it selects, and how many of them are in each state; unknown where Nodes may not be read. */
  readonly nodes: Known<NodeCounts>
  readonly budget: Known<BudgetUse>
  readonly groups: readonly ReasonGroup[]
  readonly packages: readonly PackageVersions[]
  /** Steps that take long, the longest first. */
  readonly steps: readonly StepGroup[]
  /** Nodes that take no new pods while nothing is at work on them. */
  readonly closed: readonly ClosedNodes[]
  /** Nodes that stay cordoned when their work is done, until somebody releases them. */
  readonly held: readonly string[]
  /** Nodes that agents leave alone. */
  readonly ignored: readonly string[]
  /** Undefined where too little was measured, and where nothing moves. */
  readonly pace: Pace | undefined
}

export type NodeCounts = { readonly selected: number; readonly byStatus: Readonly<Partial<Record<NodeStatus, number>>> }

export type BudgetUse = {
  readonly limit: Limit
  /** Those that are out, and joining nodes at work beside the budget, the longest first. */
  readonly holders: readonly SlotHolder[]
}

export type SlotHolder = {
  readonly node: string
  readonly phase: string
  readonly sinceMs: number | undefined
  /** It has the runtime-required taint and no pods: its slot is of `spec.bootstrap`. */
  readonly isJoining?: true
}

/** Nodes with the same report. */
export type ReasonGroup = {
  readonly reason: string
  readonly message: string
  readonly section: 'failing' | 'blocked' | 'waiting'
  readonly nodes: readonly string[]
  /** Of the node that has reported it longest. */
  readonly sinceMs: number | undefined
  /** Of retries: failed attempts of the node with most of them, and the earliest next one. */
  readonly attempts?: number
  readonly nextTryMs?: number
}

/** One step, on the nodes that run it. Times and attempts are those of the node that has run it longest. */
export type StepGroup = RunningStep & { readonly nodes: readonly string[] }

/** When a node completed a Skyhook. */
export type Completion = { readonly skyhook: string; readonly atMs: number }

/** By name. Never throws: missing facts are marked as unknown. */
export function fleetStatus(
  fleet: FleetView<NodeRow>,
  completions: readonly Completion[],
  only?: string,
): Known<readonly SkyhookStatus[]> {
  if (!fleet.skyhooks.known) return fleet.skyhooks
  const agents = agentStates(fleet)
  const shown = fleet.skyhooks.value.filter(({ metadata }) => only === undefined || metadata.name === only)
  const sorted = shown.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  return known(sorted.map((skyhook) => skyhookStatus(fleet, skyhook, agents, completions)))
}

function skyhookStatus(
  fleet: FleetView<NodeRow>,
  skyhook: Skyhook,
  agents: AgentStates,
  completions: readonly Completion[],
): SkyhookStatus {
  const { name, generation = 0, annotations = {}, deletionTimestamp, creationTimestamp = '' } = skyhook.metadata
  const isPaused = annotations[pauseKey] === 'true'
  const isDisabled = annotations[disableKey] === 'true'
  const rows = nodeFacts(fleet, skyhook, agents)
  const facts = rows.known ? rows.value : []
  const complete = facts.filter(({ status }) => status === 'complete').length
  const { stalled, stalledSinceMs } = stallOf(skyhook)
  const isMoving = !isPaused && !isDisabled && deletionTimestamp === undefined && stalled === undefined && moves(facts)
  // a deleted Skyhook of the same name is a different one
  const sinceMs = Date.parse(creationTimestamp) || 0
  const own = completions.filter((one) => one.skyhook === name && one.atMs >= sinceMs).map(({ atMs }) => atMs)
  return {
    name,
    generation,
    isPaused,
    isDisabled,
    isDeleting: deletionTimestamp !== undefined,
    stalled,
    ...(stalledSinceMs !== undefined && { stalledSinceMs }),
    nodes: rows.known ? known(countsOf(rows.value)) : rows,
    budget: mapped(budgetUse(fleet, skyhook), (use) => withFailing(use, facts)),
    groups: groupsOf(facts),
    packages: packageVersions(skyhook.spec, facts),
    steps: stepsOf(facts, finishedWork(fleet, skyhook), fleet.takenAtMs),
    closed: closedNodes(facts),
    held: namesOf(facts.filter(({ isHeld }) => isHeld)),
    ignored: namesOf(facts.filter(({ isIgnored }) => isIgnored)),
    pace: isMoving ? paceOf(own, facts.length - complete, fleet.takenAtMs) : undefined,
  }
}

const namesOf = (facts: readonly NodeFact[]): readonly string[] =>
  facts.map(({ node }) => node).toSorted((a, b) => (a < b ? -1 : 1))

/** Waits of a node that is in line: they end by themselves, and within the Skyhook. */
const lineReasons: ReadonlySet<string> = new Set<ReasonName>(['WaitingForSlot', 'WaitingForBatch', 'Preparing'])

/** Some node is at work, or is in line behind none that fails, is blocked or is silent. */
function moves(facts: readonly NodeFact[]): boolean {
  if (facts.some(({ status }) => status === 'in_progress')) return true
  if (facts.some(({ status }) => status === 'erroring' || status === 'blocked' || status === 'unknown')) return false
  return facts.some(
    ({ status, report }) =>
      status === 'waiting' && (report?.reason === undefined || lineReasons.has(report.reason.reason)),
  )
}

/** Also while it retries, as the census counts it. */
const isFailing = ({ status, report }: NodeFact): boolean =>
  status === 'erroring' || (status === 'in_progress' && isFailure(report?.reason?.reason ?? ''))

/** A slot shows what its holder does, and the node whether that fails. */
function withFailing({ limit, holders }: BudgetUse, facts: readonly NodeFact[]): BudgetUse {
  const failing = new Set(facts.filter(isFailing).map(({ node }) => node))
  return { limit, holders: holders.map((one) => (failing.has(one.node) ? { ...one, phase: 'failing' } : one)) }
}

function countsOf(facts: readonly NodeFact[]): NodeCounts {
  const byStatus: Partial<Record<NodeStatus, number>> = {}
  for (const { status } of facts) byStatus[status] = (byStatus[status] ?? 0) + 1
  return { selected: facts.length, byStatus }
}

function budgetUse(fleet: FleetView<NodeRow>, skyhook: Skyhook): Known<BudgetUse> {
  const { slots, ledgers, policies, settings } = fleet
  const { metadata, spec } = skyhook
  if (!slots.known) return slots
  if (!ledgers.known) return ledgers
  const own = slots.value.filter(({ lease }) => lease.metadata.labels?.[labelKeys.name] === metadata.name)
  const ledger = ledgers.value.filter((lease) => lease.metadata.labels?.[labelKeys.name] === metadata.name)
  const holders = own.map(holderOf).toSorted((a, b) => (a.sinceMs ?? 0) - (b.sinceMs ?? 0))
  // each compartment of a policy has its own limit
  const why = policies.known ? 'each compartment has a budget of its own' : policies.why
  if (spec.deploymentPolicy) return known({ limit: { unknown: why }, holders })
  const budget = knownBudget(spec, settings)
  if (!budget.known) return known({ limit: { unknown: budget.why }, holders })
  return known({ limit: limitOf(skyhookViewOf(fleet, skyhook), ledger, own), holders })
}

function holderOf({ holder, phase, kind, lease }: Slot): SlotHolder {
  const sinceMs = Date.parse(lease.spec?.acquireTime ?? '')
  const isJoining = kind === 'bootstrap'
  return { node: holder, phase, sinceMs: Number.isNaN(sinceMs) ? undefined : sinceMs, ...(isJoining && { isJoining }) }
}

/** Which of the holders take capacity away, and which are joining nodes beside the budget. */
export function outAndJoining(holders: readonly SlotHolder[]): {
  readonly out: readonly SlotHolder[]
  readonly joining: readonly SlotHolder[]
} {
  const { true: joining = [], false: out = [] } = Object.groupBy(holders, ({ isJoining = false }) => `${isJoining}`)
  return { out, joining }
}

/** Those that need a person come first. */
const sections = ['failing', 'blocked', 'waiting'] as const

function groupsOf(facts: readonly NodeFact[]): readonly ReasonGroup[] {
  const reported = facts.flatMap((fact) => {
    const reason = reasonOf(fact)
    return reason === undefined ? [] : [{ node: fact.node, ...reason }]
  })
  const groups = [...Map.groupBy(reported, ({ reason, message }) => `${reason} ${message}`).values()]
  return groups
    .flatMap((members): ReasonGroup[] => {
      const [first] = members
      if (first === undefined) return []
      const times = members.flatMap(({ sinceMs }) => sinceMs ?? [])
      const attempts = members.flatMap((one) => ('attempts' in one ? (one.attempts ?? []) : []))
      const nextTries = members.flatMap((one) => ('nextTryMs' in one ? (one.nextTryMs ?? []) : []))
      return [
        {
          reason: first.reason,
          message: first.message,
          section: sectionOf(first.reason),
          nodes: members.map(({ node }) => node).toSorted((a, b) => (a < b ? -1 : 1)),
          sinceMs: times.length === 0 ? undefined : Math.min(...times),
          ...(attempts.length > 0 && { attempts: Math.max(...attempts) }),
          ...(nextTries.length > 0 && { nextTryMs: Math.min(...nextTries) }),
        },
      ]
    })
    .toSorted(
      (a, b) =>
        sections.indexOf(a.section) - sections.indexOf(b.section) ||
        Number(isOrdinary(a.reason)) - Number(isOrdinary(b.reason)) ||
        b.nodes.length - a.nodes.length,
    )
}

/** Nobody has to act: its turn or the end of ordinary work is all that the node waits for. */
const isOrdinary = (reason: string): boolean => findReason(reason)?.eventOn.length === 0

/** A step that has just started is not worth a line. */
const longStepMs = 10_000

function stepsOf(facts: readonly NodeFact[], finished: FinishedWork | undefined, nowMs: number): readonly StepGroup[] {
  const running = facts.flatMap(({ node, report, isSilent, status }) => {
    const step = status === 'complete' || isSilent ? undefined : report?.step
    return step === undefined || nowMs - step.sinceMs < longStepMs ? [] : [{ node, step }]
  })
  const groups = Map.groupBy(running, ({ step: { name, version, mode, path } }) =>
    [name, version, mode, path].join(' '),
  )
  return [...groups.values()]
    .flatMap((members): StepGroup[] => {
      const [longest] = members.toSorted((a, b) => a.step.sinceMs - b.step.sinceMs)
      const nodes = members.map(({ node }) => node).toSorted((a, b) => (a < b ? -1 : 1))
      return longest ? [{ ...compared(longest.step, finished, nowMs), nodes }] : []
    })
    .toSorted((a, b) => a.sinceMs - b.sinceMs)
}

/** Reasons of newer agents, and those of agents that do not answer, are worth a look. */
const sectionOf = (reason: string): ReasonGroup['section'] => findReason(reason)?.section ?? 'blocked'

const findReason = (reason: string) => Object.entries(reasons).find(([name]) => name === reason)?.[1]

/** A pace needs some completions. Older ones do not show the current pace. */
const minMeasured = 3
const maxMeasured = 50

/** By the last completions, and by the time since: the pace of a rollout that stands still falls each minute. */
export function paceOf(completedAtMs: readonly number[], remaining: number, nowMs: number): Pace | undefined {
  const recent = completedAtMs.toSorted((a, b) => a - b).slice(-maxMeasured)
  const [first] = recent
  const last = recent.at(-1)
  if (first === undefined || last === undefined || recent.length < minMeasured || remaining <= 0) return undefined
  const usualMs = (last - first) / (recent.length - 1)
  const perNodeMs = Math.max(usualMs, (nowMs - first) / recent.length)
  if (perNodeMs <= 0) return undefined
  return { nodesPerHour: 3_600_000 / perNodeMs, restMs: remaining * perNodeMs, measured: recent.length }
}

function stallOf({ metadata, status }: Skyhook): Pick<SkyhookStatus, 'stalled' | 'stalledSinceMs'> {
  const found = conditionOf({ metadata, status }, 'Stalled')
  if (found?.status !== 'True') return { stalled: undefined }
  const { reason, message, sinceMs } = found
  return { stalled: `${reason}: ${message}`, ...(sinceMs !== undefined && { stalledSinceMs: sinceMs }) }
}

export type Condition = {
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly observedGeneration: number
  /** Since when it has this status, in ms since 1970. */
  readonly sinceMs: number | undefined
}

/** A condition of the Skyhook, of any generation. */
export function conditionOf(
  { status }: Pick<Skyhook, 'metadata'> & { status?: Skyhook['status'] },
  type: string,
): Condition | undefined {
  const conditions: unknown = status?.['conditions']
  if (!Array.isArray(conditions)) return undefined
  const found: unknown = conditions.find((one: unknown) => isObject(one) && one['type'] === type)
  if (!isObject(found)) return undefined
  const { status: value, reason, message, observedGeneration, lastTransitionTime } = found
  const sinceMs = Date.parse(String(lastTransitionTime))
  return {
    status: String(value),
    reason: String(reason),
    message: String(message),
    observedGeneration: Number(observedGeneration ?? 0),
    sinceMs: Number.isNaN(sinceMs) ? undefined : sinceMs,
  }
}
