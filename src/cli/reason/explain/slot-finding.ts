/** Why the node has no slot, by the Leases of one LIST. */
import { takesDefaultBudget } from '../../../schemas/budget.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { Slot } from '../../../lease/slot.ts'
import { isRejectedSlot } from '../../../lease/slot-creation.ts'
import type { SkyhookView } from '../../../stages/model/snapshot.ts'
import type { Finding, ObjectName } from './finding.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { isNotRenewed, type SlotAnswer } from './slot-view.ts'
import { named } from '../../../schemas/wording.ts'

const maxNames = 5

export type Waiting = {
  readonly view: SkyhookView
  readonly node: KubernetesNode
  readonly fleet: Pick<FleetView<unknown>, 'namespace' | 'takenAtMs'>
  readonly answer: SlotAnswer
  /** Why the node waits for a slot, as it reports it: only its agent gets the API server's answer. */
  readonly reported?: string | undefined
}

/** The finding for a node that is ready to start. */
export function slotFinding({ view, node, fleet: { namespace, takenAtMs }, answer, reported }: Waiting): Finding {
  const { name } = view.metadata
  const { verdict, limit, holders, batch, waitsFor } = answer
  const isDefault = takesDefaultBudget(view.spec)
  const found = { gate: 'slot', sinceMs: undefined } as const
  const holderNames = [...new Set(holders.map(({ holder }) => holder))]
  const nodes = holderNames.map((holder): ObjectName => ({ kind: 'Node', name: holder }))
  const silent = named(
    holders.filter((slot) => isNotRenewed(slot, takenAtMs)).map(({ holder }) => holder),
    maxNames,
  )
  const wayOut =
    silent === '' ? '' : `; the agents of ${silent} do not answer: bring them back, or delete Nodes that are gone`
  const ledger: ObjectName = { kind: 'Lease', namespace, name: 'skyhookd-census' }

  if (verdict.verdict !== 'wait' && reported !== undefined && isRejectedSlot(reported))
    return {
      ...found,
      cause: 'api-server',
      message: reported,
      objects: [{ kind: 'Node', name: node.metadata.name }],
      unblock: 'follow the message: most often a permission is missing, or an admission policy refuses the Lease',
      command: 'kubectl skyhook doctor',
    }
  if (verdict.verdict !== 'wait') {
    return {
      ...found,
      cause: 'next-in-line',
      message: 'a slot is free, and the node has not asked for it yet',
      objects: [{ kind: 'Node', name: node.metadata.name }],
      unblock: 'wait: nodes far back in the line look for a free slot every few minutes',
      command: `kubectl skyhook status ${name}`,
    }
  }
  if (waitsFor === 'control-plane')
    return {
      ...found,
      cause: 'control-plane',
      message: 'another node of the control plane is out of service, and at most one may be',
      objects: [{ kind: 'Lease', namespace, name: 'control-plane.slot-0' }],
      unblock: 'the node that holds the Lease control-plane.slot-0 must complete',
      command: `kubectl -n ${namespace} get lease control-plane.slot-0 -o wide`,
    }
  if (waitsFor === 'batch') {
    const isStopped = limit === 0
    return {
      ...found,
      cause: isStopped ? 'rollout-stopped' : 'batch',
      message: batch ?? verdict.reason,
      objects: [{ kind: 'DeploymentPolicy', name: view.spec.deploymentPolicy ?? '' }, ...nodes],
      unblock: isStopped
        ? 'fix the package, then let the batches start over'
        : `the nodes of the batch must end first: ${named(holderNames, maxNames)}${wayOut}`,
      command: isStopped ? `kubectl skyhook deployment-policy reset ${name}` : `kubectl skyhook status ${name}`,
    }
  }
  if (typeof limit === 'object')
    return {
      ...found,
      cause: 'no-census',
      message: verdict.reason,
      objects: [ledger],
      unblock: 'an agent must be elected and count the nodes: look at the Lease of the election and its holder',
      command: `kubectl -n ${namespace} get lease skyhookd-census`,
    }
  if (limit === 0)
    return {
      ...found,
      cause: 'budget-zero',
      message: isDefault
        ? 'the Skyhook names no budget, and the default of the chart is 0: no node may start'
        : 'the interruption budget is 0: no node may start',
      objects: [{ kind: 'Skyhook', name }],
      unblock: isDefault ? 'give the Skyhook a budget' : 'raise the budget',
      command: view.spec.deploymentPolicy
        ? `kubectl edit deploymentpolicy ${view.spec.deploymentPolicy}`
        : `kubectl patch skyhook ${name} --type merge -p '{"spec":{"interruptionBudget":{"count":1,"percent":null}}}'`,
    }
  return {
    ...found,
    cause: 'budget-full',
    message: `${verdict.reason}: ${named(holders.map(holderText), maxNames)}`,
    objects: nodes,
    unblock: `one of these nodes must complete: ${named(holderNames, maxNames)}${wayOut}`,
    command: `kubectl skyhook explain ${name} ${oldest(holders)?.holder ?? ''}`,
  }
}

const holderText = ({ holder, phase, lease }: Slot): string =>
  `${holder} (${phase}${lease.spec?.acquireTime === undefined ? '' : ` since ${lease.spec.acquireTime.slice(0, 19)}Z`})`

const oldest = (slots: readonly Slot[]): Slot | undefined =>
  slots.toSorted((a, b) => ((a.lease.spec?.acquireTime ?? '') < (b.lease.spec?.acquireTime ?? '') ? -1 : 1))[0]
