/** What the host does for the agent: prepares images, starts steps, interrupts. */
import type { InterruptRun, StepAttempt } from '../../../src/schemas/package-record.ts'
import type { StepEnd } from '../../../src/schemas/step-end.ts'
import { drainFacts } from '../../../src/stages/drain/pods.ts'
import { type PackageImage, type StartStep, failureKey, preparationKey } from '../../../src/stages/model/plan.ts'
import { blockingPod } from '../../../src/stages/drain/drain.ts'
import { countNodes } from './cluster.ts'
import {
  type InterruptObservation,
  type Preparation,
  type PreparationDepth,
  type SkyhookView,
  type Snapshot,
} from '../../../src/stages/model/snapshot.ts'
import type { NodeState } from './node-state.ts'
import { isScopeHeld, updateSlot } from './slots.ts'
import { simplePackage } from './package-content.ts'

export function prepare(
  simulated: NodeState,
  key: string,
  { references, ...image }: PackageImage,
  depth: PreparationDepth,
): boolean {
  const content = simulated.images.get(`${image.image}:${image.version}`) ?? simplePackage()
  const retryAtMs = simulated.nowMs + 30_000
  if (typeof content === 'string') {
    const reason = { reason: 'ImagePull', message: content, code: 'not-found' } as const
    simulated.preparations.set(key, { ...reason, state: 'failed', depth, retryAtMs })
    return true
  }
  const isReferenceMissing = (references?.env ?? []).some(({ name }) => simulated.missingReferences.has(name))
  const missing = {
    state: 'failed',
    depth,
    reason: 'ReferenceMissing',
    message: 'it is not there',
    retryAtMs,
  } as const
  const tag = `${image.image}:${image.version}`
  const digest = `sha256:${tag}`
  if (depth === 'manifest' && !simulated.fetchedImages.includes(tag)) {
    simulated.preparations.set(key, isReferenceMissing ? missing : { state: 'checked' })
    return true
  }
  if (simulated.areLayersSlow && !simulated.fetchedImages.includes(tag)) return false
  if (simulated.brokenLayers.has(tag)) {
    simulated.preparations.set(key, {
      state: 'failed',
      depth,
      reason: 'InvalidPackage',
      message: 'is broken',
      retryAtMs,
    })
    return true
  }
  if (!simulated.fetchedImages.includes(tag)) simulated.fetchedImages.push(tag)
  const ready: Preparation = { state: 'ready', digest, config: content, contentHashes: new Map() }
  simulated.preparations.set(key, isReferenceMissing ? missing : ready)
  simulated.preparations.set(preparationKey({ ...image, digest }), ready)
  return true
}

export function startStep(simulated: NodeState, action: StartStep, snapshot: Snapshot): boolean {
  const { id, mode, path } = action.attempt
  const attempt = simulated.attempts.get(id)
  if (attempt && attempt.state !== 'absent') return false
  if (simulated.startedSteps.has(id) && simulated.unansweredPackages.has(action.record.name)) return false
  const key = failureKey(action)
  if (simulated.startBlocker !== undefined) {
    if (simulated.failures.has(key)) return false
    const failure = { reason: 'HostUnusable', message: simulated.startBlocker, sinceMs: simulated.nowMs } as const
    simulated.failures.set(key, { ...failure, action: action.do })
    return true
  }
  simulated.failures.delete(key)
  const configMap = enterCopyDir(simulated, action)
  if (configMap === undefined) {
    simulated.attempts.set(id, {
      state: 'ended',
      end: { outcome: 'failed-to-start', detail: `${path} does not exist` },
    })
    return true
  }
  const started = { ...action, spec: { ...action.spec, configMap } }
  simulated.observer.stepStarts?.(started, snapshot)
  simulated.executedSteps.push(`${action.record.name} ${mode} ${path}`)
  simulated.startedSteps.set(id, started)
  if (simulated.hangingPackages.has(action.record.name)) simulated.hangingSteps.add(id)
  else simulated.hangingSteps.delete(id)
  if (!simulated.unansweredPackages.has(action.record.name)) simulated.attempts.set(id, { state: 'running' })
  return true
}

/** The configuration that the step finds in its package's copy dir; undefined when nobody has made that folder. */
function enterCopyDir(
  { copyDirs }: NodeState,
  { view, record, spec, needsCopyDir }: StartStep,
): Readonly<Record<string, string>> | undefined {
  const { name, version, work } = record
  const dir = `${name}-${version}-${view.metadata.uid}-${work.generation}`
  if (needsCopyDir) copyDirs.set(dir, spec.configMap ?? {})
  return copyDirs.get(dir)
}

/** What the step exits with. */
export function exitCodeOf(simulated: NodeState, action: StartStep): number {
  const { name } = action.record
  const { exitCodes } = simulated
  return simulated.exitCodeOf(action) ?? exitCodes.get(`${name} ${action.attempt.mode}`) ?? exitCodes.get(name) ?? 0
}

/** A step whose start is not answered yet has ended by itself when it is to be stopped. */
export function stopStep(simulated: NodeState, { id }: StepAttempt): boolean {
  const attempt = simulated.attempts.get(id)
  if (attempt?.state === 'ended') return false
  const action = simulated.startedSteps.get(id)
  const isUnanswered = action !== undefined && simulated.unansweredPackages.has(action.record.name)
  const killed: StepEnd = { outcome: 'killed', signal: 'TERM' }
  const unstarted: StepEnd = { outcome: 'failed-to-start', detail: 'stopped before it started' }
  const stopped = attempt?.state === 'running' ? killed : unstarted
  const end: StepEnd = isUnanswered ? { outcome: 'exited', code: exitCodeOf(simulated, action) } : stopped
  simulated.attempts.set(id, { state: 'ended', end })
  return true
}

/** As the agent does: checks pods and slot once more before the first request, and requests one reboot once. */
export function interrupt(simulated: NodeState, run: InterruptRun, view: SkyhookView): boolean {
  const { id, interrupt } = run
  const latest = simulated.interrupts.get(id)
  const key = failureKey({ do: 'interrupt', key: `interrupt/${view.metadata.name}` })
  if (simulated.interruptBlocker !== undefined && !run.abandoned) {
    if (simulated.failures.has(key)) return false
    const failure = { reason: 'HostUnreachable', message: simulated.interruptBlocker, action: 'interrupt' } as const
    simulated.failures.set(key, { ...failure, sinceMs: simulated.nowMs })
    return true
  }
  simulated.failures.delete(key)
  if (latest?.state === 'unknown') observeShutdown(simulated, id, latest)
  if (latest) return latest.state === 'unknown'
  if (!simulated.requestedInterrupts.has(id)) {
    if (run.abandoned || !mayInterrupt(simulated, run, view)) {
      simulated.interrupts.set(id, { state: 'aborted', why: 'no longer allowed' })
      return true
    }
    const answer = failedRestart(simulated, run, view.metadata.name) ?? simulated.interruptAnswers.get(interrupt.type)
    if (answer === undefined || answer.state === 'done' || answer.state === 'unknown')
      simulated.executedInterrupts.push([interrupt.type, ...(interrupt.services ?? [])].join(' '))
    if (answer) {
      if (interrupt.type === 'reboot') simulated.requestedInterrupts.add(id)
      simulated.interrupts.set(id, answer)
      return true
    }
    simulated.observer.interruptStarts?.(run, view)
    simulated.requestedInterrupts.add(id)
    if (interrupt.type === 'noop') simulated.observer.interruptEnds?.(run, view.metadata.name)
    else simulated.interrupting.set(id, { run, skyhook: view.metadata.name })
  }
  if (interrupt.type === 'reboot') simulated.interrupts.set(id, { state: 'unknown', message: 'accepted' })
  else simulated.interrupts.set(id, { state: simulated.interrupting.has(id) ? 'running' : 'done' })
  return true
}

function observeShutdown(
  simulated: NodeState,
  id: string,
  latest: Extract<InterruptObservation, { state: 'unknown' }>,
): void {
  const progress = simulated.interrupting.has(id) ? 'under-way' : simulated.shutdown
  const sinceMs = latest.shutdown?.progress === progress ? latest.shutdown.sinceMs : simulated.nowMs
  simulated.interrupts.set(id, { ...latest, shutdown: { progress, sinceMs, atMs: simulated.nowMs } })
}

/** The other services restart all the same. */
function failedRestart(simulated: NodeState, run: InterruptRun, skyhook: string): InterruptObservation | undefined {
  const services = (run.interrupt.services ?? []).filter((service) => simulated.failingServices.has(service))
  if (services.length === 0) return undefined
  const owners = run.owners.filter((key) => {
    const pending = simulated.journal.skyhooks[skyhook]?.packages[key]?.pendingInterrupt?.interrupt
    return pending?.type === 'service' && !(pending.services ?? []).some((service) => services.includes(service))
  })
  simulated.observer.interruptEnds?.({ ...run, owners }, skyhook)
  return { state: 'failed', message: `${services.join()} failed`, services }
}

/** The last check reports the interrupt in the phase of the slot. */
function mayInterrupt(simulated: NodeState, { interrupt }: InterruptRun, { metadata, spec }: SkyhookView): boolean {
  if (spec.drain?.singleNode === 'skip') countNodes(simulated)
  const { nodeCount } = simulated
  const isDrained =
    blockingPod(simulated.pods, spec, { ...drainFacts(simulated.snapshot(), metadata.name), nodeCount }) === undefined
  const isControlPlane = 'node-role.kubernetes.io/control-plane' in (simulated.node.metadata.labels ?? {})
  simulated.slots = simulated.slots.filter(({ uid }) => !simulated.lostLeases.has(uid)) // the report is a write
  const slot = simulated.slots.find(({ skyhookUid }) => skyhookUid === metadata.uid)
  if (!isDrained || slot === undefined || (isControlPlane && !isScopeHeld(simulated))) return false
  return updateSlot(simulated, slot, { phase: interrupt.type === 'reboot' ? 'rebooting' : 'interrupting' })
}
