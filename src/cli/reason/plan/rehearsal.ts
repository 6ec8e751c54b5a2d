/**
 * What a node would do, by the decisions of its agent: they are asked again and again, and everything that they order
 * is taken to succeed at once. Nothing leaves this process. Pure.
 */
import { isEqual } from '../../../schemas/json.ts'
import type { Interrupt, StageName } from '../../../schemas/skyhook.ts'
import type { Reason } from '../../../schemas/catalogue/reason.ts'
import { type InterruptRun, openStepOf } from '../../../schemas/package-record.ts'
import { selects } from '../../../schemas/selectors.ts'
import { decide } from '../../../stages/decide.ts'
import { hasMark } from '../../../stages/drain/drain.ts'
import { hasRequiredTaint, putsTaints } from '../../../stages/drain/node-spec.ts'
import type { Action } from '../../../stages/model/plan.ts'
import type { Snapshot } from '../../../stages/model/snapshot.ts'
import { slotOfSkyhook } from '../../../stages/skyhook/slot.ts'
import { carriedOut, interrupted, withAttempt } from './carried-out.ts'
import { pauseEnds, prepared } from './rehearsal-start.ts'

export type Rehearsal = {
  /** In order. */
  readonly steps: readonly RehearsedStep[]
  /** Why the work does not come to its end; undefined where it does. */
  readonly obstacle: Reason | undefined
  /** It asks for its slot as a node that joins the cluster, if no pod is in the way. */
  readonly isJoining: boolean
}

export type RehearsedStep = RehearsedTaint | RehearsedDrain | RehearsedStage | RehearsedInterrupt

/** `autoTaintNewNodes` closes the node for new pods until the Skyhook is complete there. */
export type RehearsedTaint = { readonly do: 'taint' }

/** The node is cordoned, and its pods leave. */
export type RehearsedDrain = { readonly do: 'drain' }

export type RehearsedStage = {
  readonly do: 'stage'
  readonly package: string
  readonly version: string
  readonly stage: StageName
}

/** Interrupts of several packages that are due together are one. */
export type RehearsedInterrupt = {
  readonly do: 'interrupt'
  readonly type: Interrupt['type']
  readonly services: readonly string[]
  /** Of type service, merged with restartAllServices of another package. */
  readonly alsoRestartAllServices?: true
  /** Packages that owe it. */
  readonly packages: readonly string[]
}

/** More than the longest life of 64 packages takes; a decision that never rests is a mistake of ours. */
const maxRounds = 5_000
/** Waits that end by themselves, such as a soak or Ready that has to hold, beside the pauses after failures. */
const maxWaits = 50

/**
 * `start`: the node as it is, with the Skyhooks as they would be. `asksForInterrupts`: what packages answer that say at
 * run time whether they need their interrupt. Returns what each Skyhook would do, by name.
 */
export function rehearse(start: Snapshot, asksForInterrupts = false): (skyhook: string) => Rehearsal {
  let snapshot = prepared(start)
  const stepsBySkyhook = new Map<string, RehearsedStep[]>()
  const add = (skyhook: string, step: RehearsedStep): void => {
    const steps = stepsBySkyhook.get(skyhook) ?? []
    if (!isOngoing(steps, step)) steps.push(step)
    stepsBySkyhook.set(skyhook, steps)
  }
  /** A cordon that stands when the rehearsal starts is one of its steps if anything is done under it. */
  const openCordons = new Set<string>()
  /** By the first request of each Skyhook for a slot. */
  const joining = new Map<string, boolean>()
  const names = start.skyhooks.known ? start.skyhooks.value.map(({ metadata }) => metadata.name) : []
  const result =
    (obstacleOf: (skyhook: string) => Reason | undefined) =>
    (skyhook: string): Rehearsal => ({
      steps: stepsBySkyhook.get(skyhook) ?? [],
      obstacle: obstacleOf(skyhook),
      isJoining: joining.get(skyhook) === true,
    })
  for (const name of names) if (hasMark(start.node, name)) openCordons.add(name)
  const addWork = (skyhook: string, step: RehearsedStep): void => {
    if (openCordons.delete(skyhook)) add(skyhook, { do: 'drain' })
    add(skyhook, step)
  }
  let waits = -pauseEnds(start.journal).length
  for (let round = 0; round < maxRounds; round++) {
    const plan = decide(snapshot, new Map())
    const next = carriedOut({ ...snapshot, journal: plan.journal }, plan.actions, asksForInterrupts)
    const isClosing = isClosed(next) && !isClosed(snapshot)
    if (isClosing) for (const name of closing(next)) add(name, { do: 'taint' })
    for (const name of names) {
      if (hasMark(next.node, name) && !hasMark(snapshot.node, name)) add(name, { do: 'drain' })
      if (!hasMark(next.node, name)) openCordons.delete(name)
    }
    for (const action of plan.actions) {
      if (action.do === 'startStep') {
        const { record, stage, view } = action
        addWork(view.metadata.name, { do: 'stage', package: record.name, version: record.version, stage })
      }
      // a real slot comes after the taint
      if (action.do === 'acquireSlot' && !joining.has(action.view.metadata.name))
        joining.set(action.view.metadata.name, action.isJoining || isClosing)
      if (action.do === 'interrupt') addWork(action.view.metadata.name, interruptOf(action.run))
    }
    // what ran when the rehearsal started ends now, unless the first decision stopped it
    const running = round === 0 ? runningStages(next) : []
    const interrupting = round === 0 ? runningInterrupts(next, plan.actions) : []
    for (const { skyhook, step } of [...running, ...interrupting]) addWork(skyhook, step)
    const ended = running.reduce((one, { id }) => withAttempt(one, id, 0), next)
    const after = interrupting.reduce((one, { run }) => interrupted(one, run), ended)
    const hasMoved =
      running.length > 0 ||
      interrupting.length > 0 ||
      plan.actions.some(isEffect) ||
      JSON.stringify(plan.journal) !== JSON.stringify(snapshot.journal)
    if (hasMoved) {
      snapshot = after
      continue
    }
    if (plan.requeueAtMs === Infinity || ++waits > maxWaits) {
      for (const name of openCordons) add(name, { do: 'drain' })
      return result((skyhook) => plan.reasons.get(skyhook))
    }
    snapshot = { ...next, nowMs: Math.max(snapshot.nowMs + 1, plan.requeueAtMs) }
  }
  return result(() => ({ reason: 'InternalError', message: 'the rehearsal does not end' }))
}

/** A stage continues with its next step, or starts over before anything else is done with its package. */
function isOngoing(steps: readonly RehearsedStep[], step: RehearsedStep): boolean {
  if (step.do === 'interrupt') return false
  if (step.do !== 'stage') return steps.at(-1)?.do === step.do
  const last = steps.findLast(
    (one) =>
      (one.do === 'stage' && one.package === step.package && one.version === step.version) ||
      (one.do === 'interrupt' && one.packages.includes(step.package)),
  )
  return last !== undefined && isEqual(last, step)
}

type RunningStage = { readonly id: string; readonly skyhook: string; readonly step: RehearsedStage }

/** Steps that run when the rehearsal starts, and nothing stops: they end well. */
const runningStages = ({ journal, attempts }: Snapshot): readonly RunningStage[] =>
  Object.entries(journal.skyhooks).flatMap(([skyhook, { packages }]) =>
    Object.values(packages).flatMap(({ name, version, progress }): readonly RunningStage[] => {
      const open = openStepOf(progress)
      if (progress.state !== 'running' || open === undefined || attempts.get(open.id)?.state !== 'running') return []
      return [{ id: open.id, skyhook, step: { do: 'stage', package: name, version, stage: progress.stage } }]
    }),
  )

type RunningInterrupt = { readonly run: InterruptRun; readonly skyhook: string; readonly step: RehearsedInterrupt }

/** Interrupts that run when the rehearsal starts, by the phase of their slot: nothing stops them. */
const runningInterrupts = (snapshot: Snapshot, actions: readonly Action[]): readonly RunningInterrupt[] =>
  Object.entries(snapshot.journal.skyhooks).flatMap(
    ([skyhook, { uid, interrupt: run }]): readonly RunningInterrupt[] => {
      const phase = slotOfSkyhook(snapshot, uid)?.phase
      const isContinued = actions.some((action) => action.do === 'interrupt' && action.run.id === run?.id)
      if (run === undefined || isContinued || (phase !== 'interrupting' && phase !== 'rebooting')) return []
      return [{ run, skyhook, step: interruptOf(run) }]
    },
  )

const isClosed = ({ node, settings }: Snapshot): boolean => hasRequiredTaint(node, settings.runtimeRequiredTaint)

/** The Skyhooks that put the taint on the node. */
const closing = ({ node, skyhooks }: Snapshot): readonly string[] =>
  skyhooks.known
    ? skyhooks.value
        .filter((view) => putsTaints(view) && selects(view.spec.nodeSelectors, node.metadata.labels ?? {}))
        .map(({ metadata }) => metadata.name)
    : []

/** Renewals continue for as long as a slot is held, and change nothing. */
const isEffect = ({ do: what }: Action): boolean => what !== 'renewSlot'

function interruptOf({ interrupt, owners }: InterruptRun): RehearsedInterrupt {
  const { type, services = [], alsoRestartAllServices } = interrupt
  const packages = owners.map((key) => key.split('|')[0] ?? key)
  return { do: 'interrupt', type, services, ...(alsoRestartAllServices && { alsoRestartAllServices }), packages }
}
