/**
 * Why a node is not complete for a Skyhook: the decision of its agent, repeated from what the API shows, and each gate
 * by itself. Published reasons are evidence of what happens on the host. The verdict never rests on them alone if the
 * API shows the fact itself.
 */
import { type GateName, gateNames } from '../../../schemas/catalogue/reason-codes.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { Skyhook } from '../../../schemas/skyhook.ts'
import type { ReasonName } from '../../../schemas/catalogue/reasons.ts'
import type { Reason } from '../../../schemas/catalogue/reason.ts'
import { type NodeReason, nodeStepOf, publishedOf } from '../../../schemas/published.ts'
import { formatTime } from '../../../schemas/time.ts'
import { hasRequiredTaint } from '../../../stages/drain/node-spec.ts'
import { decisionsOf, type SkyhookDecision } from '../../../stages/decide.ts'
import { completionHash } from '../../../stages/model/package-inputs.ts'
import { closedStartGates, pauseReason } from '../../../stages/skyhook/gates.ts'
import type { Known } from '../../../stages/model/snapshot.ts'
import { slotOfSkyhook } from '../../../stages/skyhook/slot.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { finishedWork } from '../../fleet/fleet-view/skyhook-view.ts'
import type { NodeDetail } from '../../fleet/fleet-view/node-detail.ts'
import { valueOr } from '../../fleet/fleet-view/readable.ts'
import type { Vitals } from '../../fleet/fleet-view/vitals.ts'
import { compared, type RunningStep } from '../../base/output/rollout-texts.ts'
import { agentFinding } from './agent-finding.ts'
import { drainFinding, leftPods } from './drain-finding.ts'
import type { Finding } from './finding.ts'
import { nodeView, type NodeView, preparationReasons } from './node-snapshot.ts'
import { reasonFinding } from './reason-finding.ts'
import { selectorFinding } from './selector-finding.ts'
import { slotFinding } from './slot-finding.ts'

export type Gate = {
  readonly gate: GateName
  /** `unknown`: the caller may not read what it depends on. `ahead`: the work has not reached it. */
  readonly verdict: 'open' | 'closed' | 'unknown' | 'ahead'
  readonly findings: readonly Finding[]
  /** Why it is unknown. */
  readonly why?: string | undefined
}

export type NodeExplanation = {
  readonly skyhook: string
  readonly node: string
  /** `working`: steps run, or are about to. */
  readonly state: 'complete' | 'working' | 'held-up' | 'not-selected'
  /** The first closed gate; undefined at work. */
  readonly verdict: Finding | undefined
  readonly gates: readonly Gate[]
  /** The reason on the Node. */
  readonly published: NodeReason | undefined
  /** How the Node's report and the verdict differ; undefined if they agree. */
  readonly disagreement: string | undefined
  /** Why the published journal cannot be trusted; undefined if it can. */
  readonly doubt: string | undefined
  /** It has the runtime-required taint until this Skyhook, and others that require it, are complete there. */
  readonly isClosed?: true
  /** What runs there, as its agent reports it; absent if nothing does. */
  readonly step?: RunningStep
  /** Pods of the cordoned node, as namespace/name, that the interrupt will end; absent if there are none. */
  readonly left?: readonly string[]
}

export type Explained = {
  readonly skyhook: Skyhook
  readonly node: KubernetesNode
  readonly detail: NodeDetail
  /** Absent: they were not read. */
  readonly vitals?: Vitals
}

/** `fleet.skyhooks` must be known: without them nothing is decided. */
export function explainNode(
  fleet: FleetView<KubernetesNode>,
  { skyhook, node, detail, vitals }: Explained,
): NodeExplanation {
  const { name } = skyhook.metadata
  const others = valueOr(fleet.skyhooks, []).filter(({ metadata }) => metadata.name !== name)
  const rebuilt = nodeView(fleet, [...others, skyhook], node, detail)
  const decisions = decisionsOf(rebuilt.snapshot)
  const index = decisions.findIndex((one) => one.name === name)
  const decision = decisions[index]
  const preceding = decisions.slice(0, Math.max(0, index)).find(({ isBlocking }) => isBlocking)?.name
  const { reason: published, companion, entries } = publishedOf(node, name)
  const common = { skyhook: name, node: node.metadata.name, published }
  const trust = rebuilt.records.get(name)?.trust
  const doubt = trust?.known === false ? trust.why : undefined

  const unselected = selectorFinding(skyhook, node)
  if (unselected)
    return {
      ...common,
      state: 'not-selected',
      verdict: unselected,
      gates: [closed('selector', [unselected])],
      disagreement: undefined,
      doubt,
    }

  const reason = decision?.reason
  const isApplied = companion?.applied === completionHash(skyhook)
  const isComplete = decision?.status === 'complete' && isApplied
  const agent = agentFinding(fleet, node, vitals)
  const context: Context = { fleet, rebuilt, skyhook, node, detail, preceding, published }
  const found = isComplete
    ? completeFindings(context, agent, reason)
    : distinct([...(agent ? [agent] : []), ...findingsOf(context, decision)])
  const findings = found.toSorted((a, b) => gateNames.indexOf(a.gate) - gateNames.indexOf(b.gate))
  const isAtWork = !isComplete && findings.every(isHarmlessAtWork)
  const step = nodeStepOf(node, name, entries)
  const verdict = isAtWork ? undefined : findings[0]
  return {
    ...common,
    state: isComplete ? 'complete' : isAtWork ? 'working' : 'held-up',
    verdict,
    gates: gatesOf(context, findings, verdict),
    disagreement: disagreementOf(context, agent, isComplete ? undefined : reason, isComplete),
    doubt,
    ...(!isComplete && isClosedFor(rebuilt, skyhook) && { isClosed: true as const }),
    ...(step && !isComplete && { step: compared(step, finishedWork(fleet, skyhook), fleet.takenAtMs) }),
    ...(isComplete || !detail.pods.known
      ? {}
      : leftPods({ skyhook, node, pods: detail.pods.value, settings: rebuilt.snapshot.settings })),
  }
}

const isClosedFor = ({ snapshot: { node, settings } }: NodeView, { spec }: Skyhook): boolean =>
  spec.runtimeRequired === true && hasRequiredTaint(node, settings.runtimeRequiredTaint)

/** Agents of two versions work together: an old one is at work if nothing else blocks it. */
const isHarmlessAtWork = ({ cause }: Finding): boolean => cause === 'agent-too-old'

type Context = {
  readonly fleet: FleetView<KubernetesNode>
  readonly rebuilt: NodeView
  readonly skyhook: Skyhook
  readonly node: KubernetesNode
  readonly detail: NodeDetail
  readonly preceding: string | undefined
  readonly published: NodeReason | undefined
}

/** Its agent matters once there is work again; during the soak it still holds a slot. */
const completeFindings = (
  context: Context,
  agent: Finding | undefined,
  reason: Reason | undefined,
): readonly Finding[] => [
  ...(agent ? [agent] : []),
  ...(reason?.reason === 'Soaking' ? [findingOf(context, reason)] : []),
]

/** All closed gates, in no order. */
function findingsOf(context: Context, decision: SkyhookDecision | undefined): readonly Finding[] {
  const { rebuilt, skyhook, preceding } = context
  const { name, uid } = skyhook.metadata
  const view = rebuilt.views.find(({ metadata }) => metadata.name === name)
  if (view === undefined) return []
  const { snapshot } = rebuilt
  const hasStarted = decision?.record?.lifecycle !== undefined
  const paused = hasStarted ? pauseReason(view, snapshot) : undefined
  const gates = hasStarted ? (paused ? [paused] : []) : closedStartGates(view, snapshot, preceding)
  const packages = [...(decision?.reason?.packages ?? [])].flatMap(([packageName, reason]) =>
    isInnocent(context, reason, packageName) ? [] : [findingOf(context, reason, packageName)],
  )
  const decided =
    decision?.reason && !isInnocent(context, decision.reason) && !isOfPackages(decision.reason)
      ? [findingOf(context, decision.reason)]
      : []
  const answer = rebuilt.slotAnswers.get(name)
  const hasSlot = slotOfSkyhook(snapshot, uid) !== undefined
  // without its policy the budget is unknown, which is not the fault of the census
  const hasBudget = view.policy === undefined || view.policy.state === 'found'
  const isShut = hasBudget && answer?.known === true && answer.value.verdict.verdict === 'wait'
  const named = decision?.reason ? [decision.reason, ...(decision.reason.packages?.values() ?? [])] : []
  const asksForNone = [...gates, ...named].some(({ reason }) => withoutSlot.has(reason))
  const slot =
    !hasStarted && !hasSlot && !asksForNone && isShut && answer.known
      ? [slotFinding({ view, node: context.node, fleet: context.fleet, answer: answer.value })]
      : []
  return [...gates.map((gate) => findingOf(context, gate)), ...packages, ...decided, ...slot]
}

/** A node with them does not ask for a slot: before it starts, only a host that must not be rebooted refuses that. */
const withoutSlot: ReadonlySet<string> = new Set<ReasonName>(['InvalidSpec', 'RebootRefused'])

/** The reason of the Skyhook is that of its packages, and each of them is named. */
const isOfPackages = ({ reason, message, packages }: NonNullable<SkyhookDecision['reason']>): boolean =>
  [...(packages?.values() ?? [])].some((one) => one.reason === reason && one.message === message)

const packageOf = ({ package: key }: Reason): string | undefined => key?.split('|')[0]

/** Packages of one image are prepared together: if one lacks something, the others are not at fault. */
function isInnocent(
  { rebuilt, skyhook }: Context,
  reason: Reason,
  packageName: string | undefined = packageOf(reason),
): boolean {
  if (packageName === undefined || !preparationReasons.has(reason.reason)) return false
  const reported = (rebuilt.evidence.get(skyhook.metadata.name) ?? []).filter((one) => one.reason === reason.reason)
  return reported.length > 0 && reported.every((one) => one.package !== undefined && one.package !== packageName)
}

/** Slots and pods are explained elsewhere. */
function findingOf(context: Context, reason: Reason, packageName = packageOf(reason)): Finding {
  const { fleet, rebuilt, skyhook, node, detail, preceding, published } = context
  const { name } = skyhook.metadata
  const sinceMs = sinceOf(context, reason)
  const view = rebuilt.views.find(({ metadata }) => metadata.name === name)
  const answer = rebuilt.slotAnswers.get(name)
  const { settings } = rebuilt.snapshot
  const budgets = valueOr(detail.budgets, [])
  const found = !view
    ? undefined
    : isSlotReason(reason) && answer?.known === true
      ? slotFinding({ view, node, fleet, answer: answer.value, reported: reportedWait(context) })
      : isDrainReason(reason) && detail.pods.known
        ? drainFinding({
            view,
            node,
            pods: detail.pods.value,
            budgets,
            settings,
            denied: deniedDrain(context),
            published: published?.message,
          })
        : undefined
  if (found) return { ...found, sinceMs: found.sinceMs ?? sinceMs }
  const record = rebuilt.records.get(name)?.record
  const finding = reasonFinding(reason, {
    skyhook,
    node,
    namespace: fleet.namespace,
    record,
    sinceMs,
    preceding,
    packageName,
  })
  const isPublished = published?.reason === reason.reason && published.package?.name === packageName
  return isPublished ? { ...finding, ...attemptsIn(published) } : finding
}

const reportedWait = ({ published }: Context): string | undefined =>
  published?.reason === 'WaitingForSlot' ? published.message : undefined

const attemptsIn = ({ attempts, nextTryMs }: NodeReason): Pick<Finding, 'attempts' | 'nextTryMs'> => ({
  ...(attempts !== undefined && { attempts }),
  ...(nextTryMs !== undefined && { nextTryMs }),
})

const isSlotReason = ({ reason }: Reason): boolean => reason === 'WaitingForSlot' || reason === 'WaitingForBatch'
const isDrainReason = ({ reason }: Reason): boolean => reason === 'ProtectedPods' || reason === 'DrainBlocked'

const deniedDrain = ({ rebuilt, skyhook }: Context): string | undefined =>
  rebuilt.evidence.get(skyhook.metadata.name)?.find(({ reason }) => reason === 'DrainBlocked')?.message

/** The text of the Node or of an Event, if it is about the same thing. */
function sinceOf({ published, rebuilt, skyhook }: Context, { reason }: Reason): number | undefined {
  if (published?.reason === reason) return published.sinceMs
  return rebuilt.evidence.get(skyhook.metadata.name)?.find((one) => one.reason === reason)?.sinceMs
}

/** The first of those with the same text, in their order. */
function distinct(findings: readonly Finding[]): readonly Finding[] {
  const byKey = new Map<string, Finding>()
  for (const one of findings) {
    const key = `${one.cause} ${one.objects.map(({ kind, name }) => `${kind}/${name}`).join()}`
    if (!byKey.has(key)) byKey.set(key, one)
  }
  return [...byKey.values()]
}

const closed = (gate: GateName, findings: readonly Finding[]): Gate => ({ gate, verdict: 'closed', findings })

function gatesOf(context: Context, findings: readonly Finding[], verdict: Finding | undefined): readonly Gate[] {
  const reached = verdict === undefined ? gateNames.length : gateNames.indexOf(verdict.gate)
  return gateNames.map((gate, index): Gate => {
    const found = findings.filter((one) => one.gate === gate)
    if (found.length > 0) return closed(gate, found)
    const why = hiddenWhy(context, gate)
    if (why !== undefined) return { gate, verdict: 'unknown', findings: [], why }
    return { gate, verdict: index < reached || isIndependent.has(gate) ? 'open' : 'ahead', findings: [] }
  })
}

/** Their state does not depend on the gates before them. */
const isIndependent: ReadonlySet<GateName> = new Set([
  'selector',
  'ignored',
  'disabled',
  'paused',
  'spec',
  'policy',
  'priority',
  'host',
  'taint',
])

/** What the caller may not read. */
function hiddenWhy({ fleet, detail, rebuilt, skyhook }: Context, gate: GateName): string | undefined {
  const answer = rebuilt.slotAnswers.get(skyhook.metadata.name)
  const sources: Partial<Record<GateName, readonly (Known<unknown> | undefined)[]>> = {
    agent: [fleet.agents],
    slot: [answer],
    drain: [detail.pods, detail.budgets],
    policy: skyhook.spec.deploymentPolicy ? [fleet.policies] : [],
  }
  const hidden = sources[gate]?.find((source) => source?.known === false)
  return hidden?.known === false ? hidden.why : undefined
}

function disagreementOf(
  { published, node }: Context,
  agent: Finding | undefined,
  reason: Reason | undefined,
  isComplete: boolean,
): string | undefined {
  if (published?.reason === reason?.reason) return undefined
  const since = published?.sinceMs === undefined ? '' : ` since ${formatTime(published.sinceMs)}`
  const shows = reason?.reason ?? (isComplete ? 'that it is complete' : 'that it is at work')
  const isSilent = agent?.cause === 'no-agent' || agent?.cause === 'agent-dead'
  const why = isSilent ? `; its agent does not act, and the report of the node is old` : ''
  return published === undefined
    ? `node ${node.metadata.name} publishes no reason, and the API shows ${shows}${why}`
    : `node ${node.metadata.name} reports ${published.reason}${since}, and the API shows ${shows}${why}`
}
