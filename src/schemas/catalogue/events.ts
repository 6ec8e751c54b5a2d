/** Every Kubernetes Event of agent and census. `make generate` writes docs/usage/events.md from it. */
import type { SkyhookConditionReason } from './conditions.ts'
import type { ReasonName } from './reasons.ts'

type EventRow = {
  readonly type: 'Normal' | 'Warning'
  readonly meaning: string
  /** Absent where no action is needed. */
  readonly remedy?: string
}

const normal = (meaning: string) => ({ type: 'Normal', meaning }) as const
const warning = (meaning: string, remedy: string) => ({ type: 'Warning', meaning, remedy }) as const

/** Events on a Node, written by its agent; reasons reported there are Warnings in addition. */
export const nodeEvents = {
  SkyhookStarted: normal('The Skyhook started its work on this node.'),
  SkyhookCompleted: normal('All packages of the Skyhook are complete on this node.'),
  SkyhookFoundComplete: normal(
    'An earlier Skyhook of this name completed all that this one asks for. No step ran. The message has the ' +
      'command that runs its packages again.',
  ),
  SkyhookReset: normal('Someone removed the annotation `nodeState_<skyhook>`; all packages run again.'),
  PackageRerun: normal('Someone edited the annotation `nodeState_<skyhook>`; the package runs again.'),
  EditIgnored: warning(
    'Someone edited the annotation `nodeState_<skyhook>` in a way that the agent cannot follow.',
    'Read the message. To run a package again, remove its entry; to run all of them, remove the annotation.',
  ),
  InterruptCompleted: normal('The interrupt (reboot, service restarts, …) is done.'),
  InterruptRequired: normal(
    'A package with `when: required` reported that it needs its interrupt; the node drains for it.',
  ),
  RebootSkipped: normal('The host lost its disk after it had rebooted for this spec; it does not reboot again.'),
  UninstallFailed: warning(
    'The uninstall of a package that left the spec failed three times. What it left on the host stays there, the ' +
      'annotation `nodeState_<skyhook>` shows `uninstall/unknown`, and the agent does not try again.',
    'Put the package back with a configuration that it can be uninstalled with and remove it again, or clean the ' +
      'host by hand and remove its entry from the annotation.',
  ),
  StepOutcomeUnknown: warning(
    'Nothing recorded how a step ended, for example after a power cut. The agent repeats the step.',
    'Check that the step can be repeated safely.',
  ),
  CordonChanged: warning(
    'Someone else cordoned or uncordoned the node while the Skyhook holds it.',
    'To keep the node cordoned afterwards, annotate it with `skyhook.nvidia.com/keep-cordoned=true`.',
  ),
  PodDeleted: warning(
    'The pod in the message did not leave within `drain.timeoutSeconds`; the agent deleted it regardless of its ' +
      'disruption budget.',
    'To wait for such pods instead, set `drain.onTimeout: wait`.',
  ),
  HostStateLost: warning(
    'The host has no readable journal of the work that the Node shows. All packages run again.',
    'Find out whether the disk was replaced, wiped or damaged.',
  ),
  OperatorWorkAdopted: normal('The agent adopted the work of the Skyhook operator on this node.'),
} as const satisfies Record<string, EventRow>

/** Events on a Skyhook, written by the census; it summarizes there what many nodes report. */
export const skyhookEvents = {
  Complete: normal('The condition `Ready` became True: all selected nodes are complete.'),
  Incomplete: normal(
    'The condition `Ready` became False or Unknown without an edit of the Skyhook, for example because a node ' +
      'joined.',
  ),
  NodesErroring: warning(
    'Packages have failed for good, and no other node continues. The agents still retry.',
    'Look at the [reasons](reasons.md) in the message.',
  ),
  NodesBlocked: warning(
    'A setting keeps at least one node out, and no package fails.',
    'Look at the [reasons](reasons.md) in the message.',
  ),
  RolloutStopped: warning(
    'As many batches in a row have failed as the DeploymentPolicy allows. Nodes that have started continue, and no ' +
      'other node starts.',
    'Fix the package, then set the annotation `skyhook.nvidia.com/reset-batches` to another text.',
  ),
  FailedNodesHoldBudget: warning(
    'Nodes that have failed for good hold the whole budget or keep the batch open, and other nodes wait.',
    'Look at the [reasons](reasons.md) of the named nodes.',
  ),
  SilentNodesKeepSlots: warning(
    'Nodes that were at work have had no Ready agent for ten minutes. They keep their slots, and nothing continues.',
    'Bring the nodes in the message back, or [delete their Nodes](operations.md#nodes-and-hosts).',
  ),
  DeploymentPolicyNotFound: warning(
    'The DeploymentPolicy that the Skyhook names has not existed for two minutes. No node starts for it.',
    'Create the policy, or change `spec.deploymentPolicy`.',
  ),
  DeploymentPolicyUnknown: warning(
    'The DeploymentPolicies cannot be read. No node starts for the Skyhook.',
    'Follow the message: most often a permission is missing.',
  ),
  DeletionBlocked: warning(
    'The Skyhook is being deleted, and the annotation `pause` or `disable`, or the label `ignore` of the nodes, ' +
      'prevents the uninstall.',
    'Remove what the message names.',
  ),
  ImageTagIgnored: warning(
    'The image of a package has a tag other than its `version`. The version is pulled, and the tag is ignored.',
    'Remove the tag from `image`, or correct `version`.',
  ),
  AgentNotReady: warning(
    'The named nodes have had no Ready agent for ten minutes; what they last reported may be outdated.',
    'Look at these nodes and their agent pods.',
  ),
  UninstallSkipped: warning(
    'The Skyhook was deleted while the named nodes had no Ready agent. Its packages are still installed there.',
    'Remove the packages by hand, or discard the nodes.',
  ),
} as const satisfies Record<string, EventRow>

export type NodeEventReason = keyof typeof nodeEvents | ReasonName
export type SkyhookEventReason = keyof typeof skyhookEvents | SkyhookConditionReason<'Stalled'>

/** Reasons of nodes are all Warnings: the harmless ones are not reported. */
export function eventTypeOf(reason: string): 'Normal' | 'Warning' {
  const rows: Readonly<Record<string, EventRow>> = { ...nodeEvents, ...skyhookEvents }
  return rows[reason]?.type ?? 'Warning'
}
