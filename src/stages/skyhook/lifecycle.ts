/**
 * When the work of a Skyhook on this node has started. From then on it goes to its end under a slot that is the node's:
 * it is created again if it is lost. A node that gave its slot back has ended that, whatever is half done on it: its
 * capacity is with others now, and it needs the budget of the moment to start again.
 */
import { isRetrying, isRunning, type PackageRecord } from '../../schemas/journal.ts'
import { hasCordon } from '../drain/drain.ts'
import type { PackageState } from '../model/package-state.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import { drainBlocker, isDrainRequested } from './drain-status.ts'
import { readyDaemonSets } from './soak.ts'

type LifecyclePermission = {
  /** Stages may begin on the host. */
  readonly mayStart: boolean
  /** The node may be taken out of service as well. */
  readonly mayDisrupt: boolean
}

/** What was half done when the node gave its slot back is under way again, now that it has another one. */
export function resumeLifecycle(builder: PlanBuilder, { mayStart }: Pick<LifecyclePermission, 'mayStart'>): void {
  if (mayStart && Object.values(builder.record.packages).some(isUnderWay)) begin(builder)
}

/** Work begins with the first stage, or with taking the node out of service for it. */
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
 * The node gives its slot back half changed: nobody asks for the rest any more. Until its cordon is gone the slot, and
 * the right to continue, stay.
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

/** The interrupt ran, and what follows it has not passed: the node has to become Ready for it. */
const isPastInterrupt = ({ progress: { stage, state } }: PackageRecord): boolean =>
  stage === 'interrupt'
    ? state === 'complete'
    : stage === 'post-interrupt' && (state === 'running' || state === 'retrying')
