/**
 * When the work of a Skyhook on this node has started. From then on it continues to its end under the node's slot,
 * which is created again if it is lost. Giving the slot back ends that, even if work is half done: other nodes may use
 * the capacity now, and the node needs the current budget to start again.
 */
import { isRetrying, isRunning, type PackageRecord } from '../../schemas/journal.ts'
import { hasCordon } from '../drain/drain.ts'
import type { PackageState } from '../model/package-state.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import { drainBlocker, isDrainRequested } from './drain-status.ts'
import { readyDaemonSets } from './soak.ts'

type LifecyclePermission = {
  /** Stages may start on the host. */
  readonly mayStart: boolean
  /** The node may be taken out of service as well. */
  readonly mayDisrupt: boolean
}

/** Work that was half done when the node gave its slot back continues, now that the node has another slot. */
export function resumeLifecycle(builder: PlanBuilder, { mayStart }: Pick<LifecyclePermission, 'mayStart'>): void {
  if (mayStart && Object.values(builder.record.packages).some(isUnderWay)) begin(builder)
}

/** Work starts with the first stage, or with taking the node out of service for it. */
export function startLifecycle(
  builder: PlanBuilder,
  states: readonly PackageState[],
  { mayStart, mayDisrupt }: LifecyclePermission,
): void {
  if (!mayStart) return
  const mayDrain = mayDisrupt && isDrainRequested(states) && drainBlocker(builder) === undefined
  if (mayDrain || Object.values(builder.record.packages).some(isUnderWay)) begin(builder)
}

/**
 * The node gives its slot back half changed, because the rest is no longer requested. Until its cordon is gone, the
 * slot and the right to continue stay.
 */
export function endLifecycle(builder: PlanBuilder): void {
  const { snapshot, view, record } = builder
  if (snapshot.slots.known && !hasCordon(snapshot, view.metadata.name))
    builder.record = { ...record, lifecycle: undefined }
}

function begin(builder: PlanBuilder): void {
  const { record, snapshot, view } = builder
  if (record.lifecycle) return
  const { generation = 0, name } = view.metadata
  const isInterrupted = Object.values(record.packages).some(isPastInterrupt)
  const lifecycle = {
    startedAtMs: snapshot.nowMs,
    generation,
    ...(isInterrupted && { interruptedAtMs: snapshot.nowMs }),
    ...readyDaemonSets(snapshot, view),
  }
  builder.record = { ...record, lifecycle, adopted: undefined, takenOver: undefined }
  builder.events.push({ type: 'began', skyhook: name, generation })
}

const isUnderWay = (entry: PackageRecord): boolean => isRunning(entry) || isRetrying(entry) || isPastInterrupt(entry)

/** The interrupt ran, and post-interrupt has not passed: the node must become Ready for it. */
const isPastInterrupt = ({ progress: { stage, state } }: PackageRecord): boolean =>
  stage === 'interrupt'
    ? state === 'complete'
    : stage === 'post-interrupt' && (state === 'running' || state === 'retrying')
