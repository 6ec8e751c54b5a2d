/**
 * What a node would do, by the decisions of its agent: they are asked again and again, and everything that they order
 * is taken to succeed at once. Nothing leaves this process. Pure.
 */
import type { Interrupt, StageName } from '../../schemas/skyhook.ts'
import type { NodeCondition, NodePatch } from '../../schemas/kubernetes.ts'
import { type Mode, type PackageConfig, stagesWithSteps, type Step } from '../../schemas/package-config.ts'
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import { openStepOf } from '../../schemas/journal.ts'
import { isEqual } from '../../schemas/equal.ts'
import { selects } from '../../schemas/selectors.ts'
import { decide } from '../../stages/decide.ts'
import { hasMark } from '../../stages/drain/drain.ts'
import { hasRequiredTaint, putsTaints } from '../../stages/drain/node-spec.ts'
import type { Action } from '../../stages/model/plan.ts'
import { known, type OwnSlot, type Preparation, type SkyhookView, type Snapshot } from '../../stages/model/snapshot.ts'
import { versionsOf } from '../../stages/skyhook/slot.ts'
import { pauseEnds, withShortPauses } from './short-pauses.ts'

export type Rehearsal = {
  /** In order. */
  readonly steps: readonly RehearsedStep[]
  /** Why the work does not come to its end; undefined where it does. */
  readonly obstacle: Reason | undefined
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
  const names = start.skyhooks.known ? start.skyhooks.value.map(({ metadata }) => metadata.name) : []
  const ended =
    (obstacleOf: (skyhook: string) => Reason | undefined) =>
    (skyhook: string): Rehearsal => ({ steps: stepsBySkyhook.get(skyhook) ?? [], obstacle: obstacleOf(skyhook) })
  for (const name of names) if (hasMark(start.node, name)) openCordons.add(name)
  const addWork = (skyhook: string, step: RehearsedStep): void => {
    if (openCordons.delete(skyhook)) add(skyhook, { do: 'drain' })
    add(skyhook, step)
  }
  let waits = -pauseEnds(start.journal).length
  for (let round = 0; round < maxRounds; round++) {
    const plan = decide(snapshot, new Map())
    const next = carriedOut({ ...snapshot, journal: plan.journal }, plan.actions, asksForInterrupts)
    if (isClosed(next) && !isClosed(snapshot)) for (const name of closing(next)) add(name, { do: 'taint' })
    for (const name of names) {
      if (hasMark(next.node, name) && !hasMark(snapshot.node, name)) add(name, { do: 'drain' })
      if (!hasMark(next.node, name)) openCordons.delete(name)
    }
    for (const action of plan.actions) {
      if (action.do === 'startStep') {
        const { record, stage, view } = action
        addWork(view.metadata.name, { do: 'stage', package: record.name, version: record.version, stage })
      }
      if (action.do === 'interrupt') addWork(action.view.metadata.name, interruptOf(action))
    }
    // what ran when the rehearsal started ends now, unless the first decision stopped it
    const running = round === 0 ? runningStages(next) : []
    for (const { skyhook, step } of running) addWork(skyhook, step)
    const after = running.reduce((one, { id }) => withAttempt(one, id, 0), next)
    const hasMoved =
      running.length > 0 ||
      plan.actions.some(isEffect) ||
      JSON.stringify(plan.journal) !== JSON.stringify(snapshot.journal)
    if (hasMoved) {
      snapshot = after
      continue
    }
    if (plan.requeueAtMs === Infinity || ++waits > maxWaits) {
      for (const name of openCordons) add(name, { do: 'drain' })
      return ended((skyhook) => plan.reasons.get(skyhook))
    }
    snapshot = { ...next, nowMs: Math.max(snapshot.nowMs + 1, plan.requeueAtMs) }
  }
  return ended(() => ({ reason: 'InternalError', message: 'the rehearsal does not end' }))
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

/** What could stand in the way only for now is out of the way; what is due is done from the next moment on. */
const prepared = (start: Snapshot): Snapshot => ({
  ...start,
  nowMs: start.nowMs + 1,
  journal: withShortPauses(start.journal, start.nowMs + 1),
  node: inTouch(start.node),
  slotDenials: new Map(),
  distantSkyhooks: new Set(),
  preparations: allPrepared,
  failures: new Map(),
  evictions: new Map(),
  interrupts: new Map(),
  pods: known({ pods: [], since: 'cordoned' }),
  slots: known(start.slots.known ? start.slots.value : []),
  host: { state: 'usable' },
})

/** As its kubelet reports it once it is back: Kubernetes itself puts these taints on, and takes them off again. */
const inTouch = ({ metadata, spec, status }: Snapshot['node']): Snapshot['node'] => ({
  metadata,
  spec: { ...spec, taints: (spec?.taints ?? []).filter(({ key }) => !taintsOfSilence.has(key)) },
  status: { ...status, conditions: withReady(status?.conditions) },
})

const taintsOfSilence: ReadonlySet<string> = new Set(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'])

const withReady = (conditions: readonly NodeCondition[] = []): readonly NodeCondition[] => [
  ...conditions.filter(({ type }) => type !== 'Ready'),
  { type: 'Ready', status: 'True' },
]

function interruptOf({ run }: Extract<Action, { do: 'interrupt' }>): RehearsedInterrupt {
  const { type, services = [] } = run.interrupt
  return { do: 'interrupt', type, services, packages: run.owners.map((key) => key.split('|')[0] ?? key) }
}

const carriedOut = (snapshot: Snapshot, actions: readonly Action[], asksForInterrupts: boolean): Snapshot =>
  actions.reduce((one, action) => afterAction(one, action, asksForInterrupts), snapshot)

function afterAction(snapshot: Snapshot, action: Action, asksForInterrupts: boolean): Snapshot {
  const { slots } = snapshot
  const held = slots.known ? slots.value : []
  switch (action.do) {
    case 'acquireSlot':
      return withSlots(snapshot, [
        ...held,
        ...(action.withControlPlane ? [slotOf(snapshot, 'control-plane', action.view)] : []),
        slotOf(snapshot, 'skyhook', action.view),
      ])
    case 'acquireControlPlaneSlot':
      return withSlots(snapshot, [...held, slotOf(snapshot, 'control-plane', action.view)])
    case 'createRecoverySlot':
      return withSlots(snapshot, [...held, slotOf(snapshot, action.scope, action.view)])
    case 'confirmSlot':
      return withSlots(snapshot, withConfirmed(held, action.slot, { admittedUnder: versionsOf(action.view) }, snapshot))
    case 'renewSlot':
      return withSlots(snapshot, withConfirmed(held, action.slot, {}, snapshot))
    case 'releaseSlot':
      return withSlots(
        snapshot,
        held.filter(({ uid }) => uid !== action.slot.uid),
      )
    case 'startStep':
      return withAttempt(snapshot, action.attempt.id, 0)
    case 'stopStep':
      return withAttempt(snapshot, action.step.id, 143)
    case 'cleanUp':
      return { ...snapshot, cleanUps: new Map([...snapshot.cleanUps, [action.requestId, { state: 'done' }]]) }
    case 'readStatus': {
      const requests = { run: false, interrupt: asksForInterrupts }
      const status = { version: 1, bootId: snapshot.bootId, message: '', requests }
      const answer = { state: 'read', writtenAtMs: snapshot.nowMs, status } as const
      return { ...snapshot, requestedStatuses: new Map([...snapshot.requestedStatuses, [action.requestId, answer]]) }
    }
    case 'countNodes':
      return { ...snapshot, nodeCount: { isSingle: false, atMs: snapshot.nowMs } }
    case 'interrupt':
      return interrupted(snapshot, action)
    case 'publish':
      return { ...snapshot, node: patched(snapshot, action.patch) }
    case 'forgetStep':
    case 'recordStep': {
      const attempts = new Map(snapshot.attempts)
      attempts.delete(action.step.id)
      return { ...snapshot, attempts }
    }
    case 'prepare':
    case 'evict':
    case 'recordChecks':
    case 'recordHistory':
    case 'recordInterrupt':
      return snapshot
  }
}

const withSlots = (snapshot: Snapshot, slots: readonly OwnSlot[]): Snapshot => ({ ...snapshot, slots: known(slots) })

const withConfirmed = (
  held: readonly OwnSlot[],
  { uid }: OwnSlot,
  change: Pick<OwnSlot, 'admittedUnder'>,
  { nowMs }: Snapshot,
): readonly OwnSlot[] =>
  held.map((slot) => (slot.uid === uid ? { ...slot, ...change, ownership: 'confirmed', renewedAtMs: nowMs } : slot))

function slotOf({ nowMs }: Snapshot, scope: OwnSlot['scope'], view: SkyhookView): OwnSlot {
  const skyhook = scope === 'skyhook' ? view.metadata.name : ''
  const skyhookUid = scope === 'skyhook' ? view.metadata.uid : undefined
  const lease = `rehearsed-${scope}-${skyhook}`
  return {
    scope,
    skyhook,
    skyhookUid,
    lease,
    uid: lease,
    phase: 'working',
    ownership: 'confirmed',
    admittedUnder: versionsOf(view),
    isFormer: false,
    renewedAtMs: nowMs,
  }
}

const withAttempt = (snapshot: Snapshot, id: string, code: number): Snapshot => ({
  ...snapshot,
  attempts: new Map([...snapshot.attempts, [id, { state: 'ended', end: { outcome: 'exited', code } }]]),
})

function interrupted(snapshot: Snapshot, { run }: Extract<Action, { do: 'interrupt' }>): Snapshot {
  if (run.interrupt.type !== 'reboot')
    return { ...snapshot, interrupts: new Map([...snapshot.interrupts, [run.id, { state: 'done' }]]) }
  const bootId = `${snapshot.bootId}+`
  const { node } = snapshot
  const status = {
    ...node.status,
    nodeInfo: { bootID: bootId },
    conditions: withReady(node.status?.conditions),
  }
  return { ...snapshot, bootId, attempts: new Map(), interrupts: new Map(), node: { ...node, status } }
}

function patched({ node }: Snapshot, patch: NodePatch): Snapshot['node'] {
  const { metadata, spec, status } = node
  const merged = (
    before: Readonly<Record<string, string>> = {},
    changes: NodePatch['labels'],
  ): Record<string, string> =>
    Object.fromEntries(
      Object.entries({ ...before, ...changes }).flatMap(([key, value]) =>
        value === null ? [] : [[key, value] as const],
      ),
    )
  const replaced = new Set([...patch.conditions.map(({ type }) => type), ...patch.removedConditions])
  return {
    metadata: {
      ...metadata,
      resourceVersion: `${metadata.resourceVersion}+`,
      labels: merged(metadata.labels, patch.labels),
      annotations: merged(metadata.annotations, patch.annotations),
    },
    spec: {
      ...spec,
      ...(patch.unschedulable !== undefined && { unschedulable: patch.unschedulable }),
      ...(patch.taints && { taints: patch.taints }),
    },
    status: {
      ...status,
      conditions: [...(status?.conditions ?? []).filter(({ type }) => !replaced.has(type)), ...patch.conditions],
    },
  }
}

/** A package that has something to do in each stage. */
const anyStep: Step = {
  name: '',
  path: 'step',
  arguments: [],
  returncodes: [0],
  onHost: true,
  env: {},
  idempotence: 'step',
  upgradeStep: false,
}
const modes = stagesWithSteps.flatMap((stage): readonly Mode[] => [stage])
const anyConfig: PackageConfig = {
  packageName: 'any',
  packageVersion: '1.0.0',
  expectedConfigFiles: [],
  modes: Object.fromEntries(modes.map((mode) => [mode, [anyStep]])),
}

/** All images are on the host, of whichever package: one that takes longer would let others go first. */
class AllPrepared extends Map<string, Preparation> {
  override get = (): Preparation => ready
  override has = (): boolean => true
}
const ready: Preparation = { state: 'ready', digest: 'rehearsed', config: anyConfig, contentHashes: new Map() }
const allPrepared = new AllPrepared()
