/** All Skyhooks at the census: which of them to count again after a change, and how soon. */
import type { KubeObject } from '../kube/objects.ts'
import { requestBackoff } from '../kube/retry.ts'
import type { Change } from '../kube/store.ts'
import { ledgerName } from '../lease/names.ts'
import type { Leases } from '../lease/slot-reads.ts'
import type { Lease } from '../lease/slot.ts'
import { ignoreLabel } from '../schemas/annotations.ts'
import { backoffMs } from '../schemas/backoff.ts'
import type { Random } from '../schemas/clock.ts'
import type { PolicyKnowledge } from '../schemas/deployment-policy.ts'
import { isEqual } from '../schemas/json.ts'
import { selects } from '../schemas/selectors.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import type { ClusterView } from './model/cluster-view.ts'
import { type CensusNode, skyhookOfKey } from './model/node-facts.ts'
import {
  createSkyhookReconciler,
  type SkyhookReconciler,
  type SkyhookReconcilerOptions,
} from './reconcile/skyhook-reconciler.ts'

export type SchedulerOptions = {
  readonly leases: Leases
  readonly random: Random
  /** While it is not trusted, nothing is counted or written. */
  readonly view: Omit<ClusterView, 'synced' | 'distrustedMs' | 'close'>
  readonly defaultBudget: SkyhookReconcilerOptions['defaultBudget']
  readonly isNodeWrightServed?: boolean
  readonly report: SkyhookReconcilerOptions['report']
  readonly onCounted: SkyhookReconcilerOptions['onCounted']
  readonly onFailed: (skyhook: string, error: unknown) => void
  /** A Skyhook could not be counted. It is retried with growing pauses. */
  readonly onCountFailed: (skyhook: string, error: unknown) => void
  readonly signal: AbortSignal
}

export type Scheduler = {
  skyhooksChanged(changes: readonly Change<Skyhook & KubeObject>[]): void
  ledgersChanged(changes: readonly Change<Lease>[]): void
  /** A LIST of Skyhooks or of ledgers was complete, and its changes were shown. */
  listed(what: 'skyhook' | 'ledger'): void
  /** `before` and `after` are undefined for a node that did not exist, or no longer does. */
  nodeChanged(before: CensusNode | undefined, after: CensusNode | undefined): void
  /** A change that concerns every Skyhook: agents fell silent, or the view can be trusted again. */
  enqueueAll(): void
}

/** Changes come in bursts; one count serves all that came within this time. */
const debounceMs = 50
/** Counting takes at most a tenth of the time, however many nodes and Skyhooks there are. */
const restRatio = 9
const maxTimerMs = 2 ** 31 - 1

const startableAtMs = ({ isBusy, dueMs, notBeforeMs }: QueueItem): number =>
  isBusy ? Infinity : Math.max(dueMs, notBeforeMs)

type QueueItem = {
  readonly skyhook: string
  readonly reconciler: SkyhookReconciler
  dueMs: number
  /** Whether anything changes or not: its last turns could not be made. */
  notBeforeMs: number
  failures: number
  isBusy: boolean
}

export function startScheduler(options: SchedulerOptions): Scheduler {
  const { leases, random, view, signal } = options
  const { skyhooks } = view
  const { clock } = leases
  const queue = new Map<string, QueueItem>()
  let cancelTimer = (): void => {}
  let restUntilMs = -Infinity
  signal.addEventListener('abort', () => cancelTimer())

  const queueItemOf = (skyhook: Skyhook): QueueItem => {
    const { name, uid } = skyhook.metadata
    const known = queue.get(uid)
    if (known !== undefined) return known
    const reconciler = createSkyhookReconciler({
      leases,
      observe() {
        const present = skyhooks.get(name)
        if (!view.isTrusted() || present?.metadata.uid !== uid) return undefined
        const ledger = view.ledgers.get(ledgerName({ name, uid }))
        const policy = view.policyOf(present.spec.deploymentPolicy)
        // once they are listed, everything is counted again; a refusal may last, and is reported
        if (policy?.state === 'unknown' && policy.isRefused !== true) return undefined
        return { nodes: view.nodes, agents: view.agents(), skyhook: present, ledger, policy }
      },
      defaultBudget: options.defaultBudget,
      isNodeWrightServed: options.isNodeWrightServed === true,
      relist: (what) => view.relist(what),
      report: options.report,
      onCounted: options.onCounted,
      onFailed: (error) => options.onFailed(name, error),
      random,
      signal,
    })
    const item: QueueItem = {
      skyhook: name,
      reconciler,
      dueMs: Infinity,
      notBeforeMs: -Infinity,
      failures: 0,
      isBusy: false,
    }
    queue.set(uid, item)
    return item
  }

  const enqueue = (item: QueueItem, delayMs = debounceMs): void => {
    const dueMs = clock.monotonicMs() + delayMs
    if (dueMs >= item.dueMs) return
    item.dueMs = dueMs
    armTimer()
  }

  const armTimer = (): void => {
    cancelTimer()
    const next = Math.min(...[...queue.values()].map(startableAtMs))
    if (signal.aborted || next === Infinity) return
    const delayMs = Math.max(0, next - clock.monotonicMs(), restUntilMs - clock.monotonicMs())
    cancelTimer = clock.startTimer(Math.min(maxTimerMs, delayMs), runNext)
  }

  /** Starts one turn at a time; its requests overlap with those of others. */
  const runNext = (): void => {
    const startedMs = clock.monotonicMs()
    const [item] = [...queue.values()]
      .filter((one) => startableAtMs(one) <= startedMs)
      .toSorted((a, b) => startableAtMs(a) - startableAtMs(b))
    if (item !== undefined) {
      item.isBusy = true
      item.dueMs = Infinity
      void reconcile(item)
      restUntilMs = clock.monotonicMs() + (clock.monotonicMs() - startedMs) * restRatio
    }
    armTimer()
  }

  const reconcile = async (item: QueueItem): Promise<void> => {
    try {
      const requeueAtMs = await item.reconciler.reconcile()
      item.dueMs = Math.min(item.dueMs, requeueAtMs) // it may have been enqueued meanwhile
      item.failures = 0
    } catch (error) {
      // a bug of this program that one Skyhook triggers: the others are still counted
      options.onCountFailed(item.skyhook, error)
      item.notBeforeMs = clock.monotonicMs() + backoffMs(++item.failures, requestBackoff, random.number())
      item.dueMs = item.notBeforeMs
    }
    item.isBusy = false
    armTimer()
  }

  const observed = (item: QueueItem, what: 'skyhook' | 'ledger', isListed = false): void => {
    const isOwnWrite = item.reconciler.observed(what, isListed)
    enqueue(item, isOwnWrite ? 0 : debounceMs) // the turns after it wait for nothing else
  }

  return {
    skyhooksChanged(changes) {
      for (const { type, object } of changes) {
        if (type === 'deleted') queue.delete(object.metadata.uid)
        else observed(queueItemOf(object), 'skyhook')
      }
    },
    ledgersChanged(changes) {
      for (const { object } of changes) {
        for (const skyhook of skyhooks.values()) {
          if (ledgerName(skyhook.metadata) === object.metadata.name) observed(queueItemOf(skyhook), 'ledger')
        }
      }
    },
    listed(what) {
      for (const item of queue.values()) observed(item, what, true)
    },
    nodeChanged(before, after) {
      const change = nodeChange(before, after)
      for (const skyhook of skyhooks.values()) {
        if (affectsCount(skyhook, change, view.policyOf(skyhook.spec.deploymentPolicy))) enqueue(queueItemOf(skyhook))
      }
    },
    enqueueAll() {
      for (const skyhook of skyhooks.values()) enqueue(queueItemOf(skyhook))
    },
  }
}

/** Which Skyhooks a change of a Node concerns. Nodes change all the time; few changes matter to a count. */

type NodeChange = {
  /** Undefined for a node that did not exist. */
  readonly before: CensusNode | undefined
  /** Undefined for a node that no longer does. */
  readonly after: CensusNode | undefined
  /** It matters to every Skyhook that selects the node. */
  readonly isForAll: boolean
  /** The Skyhooks whose annotations changed. */
  readonly skyhooks: ReadonlySet<string>
  readonly hasOtherLabels: boolean
}

export function nodeChange(before: CensusNode | undefined, after: CensusNode | undefined): NodeChange {
  const hasOtherLabels = !isEqual(before?.labels, after?.labels)
  const isForAll =
    before?.uid !== after?.uid ||
    before?.labels[ignoreLabel] !== after?.labels[ignoreLabel] ||
    !isEqual(before?.cordonedBy, after?.cordonedBy) // any cordon takes the node out of service
  return { before, after, isForAll, skyhooks: changedSkyhooks(before?.annotations, after?.annotations), hasOtherLabels }
}

/** Whether it can change the count for a Skyhook. `policy`: of the name in its spec. */
export function affectsCount(
  { metadata, spec }: Skyhook,
  { before, after, isForAll, skyhooks, hasOtherLabels }: NodeChange,
  policy?: PolicyKnowledge,
): boolean {
  if (!isForAll && !hasOtherLabels && !skyhooks.has(metadata.name)) return false
  const was = before !== undefined && selects(spec.nodeSelectors, before.labels)
  const is = after !== undefined && selects(spec.nodeSelectors, after.labels)
  if (was !== is) return true
  if (!was || !is) return false
  if (isForAll || skyhooks.has(metadata.name)) return true
  return policy?.state === 'found' && mayMove(policy.spec.compartments ?? [], before.labels, after.labels)
}

type Compartments = NonNullable<Extract<PolicyKnowledge, { readonly state: 'found' }>['spec']['compartments']>

/** Other compartments select it: it may be in another one, and each counts those that it selects. */
const mayMove = (compartments: Compartments, before: CensusNode['labels'], after: CensusNode['labels']): boolean =>
  compartments.some(({ selector }) => selects(selector, before) !== selects(selector, after))

type Annotations = CensusNode['annotations'] | undefined

function changedSkyhooks(before: Annotations = {}, after: Annotations = {}): ReadonlySet<string> {
  const changed = new Set<string>()
  const add = (key: string): void => {
    const skyhook = before[key] === after[key] ? undefined : skyhookOfKey(key)
    if (skyhook !== undefined) changed.add(skyhook)
  }
  for (const key of Object.keys(after)) add(key)
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) add(key)
  return changed
}
