/** Every Kubernetes Event of agent and census. `make generate` writes docs/usage/events.md from it. */
import type { SkyhookConditionReason } from './conditions.ts'
import type { ReasonName } from './reasons.ts'

type EventRow = {
  readonly type: 'Normal' | 'Warning'
  readonly meaning: string
  /** Absent where no action is needed. */
  readonly remedy?: string
}

/** Events on a Node, written by its agent; reasons reported there are Warnings in addition. */
export const nodeEvents = {
  SkyhookStarted: { type: 'Normal', meaning: 'The Skyhook started its work on this node.' },
  SkyhookCompleted: { type: 'Normal', meaning: 'All packages of the Skyhook are complete on this node.' },
  SkyhookFoundComplete: {
    type: 'Normal',
    meaning:
      'An earlier Skyhook of this name completed all that this one asks for. No step ran. The message has the ' +
      'command that runs its packages again.',
  },
  SkyhookReset: {
    type: 'Normal',
    meaning: 'Someone removed the annotation `nodeState_<skyhook>`; all packages run again.',
  },
  PackageRerun: {
    type: 'Normal',
    meaning: 'Someone edited the annotation `nodeState_<skyhook>`; the package runs again.',
  },
  EditIgnored: {
    type: 'Warning',
    meaning: 'Someone edited the annotation `nodeState_<skyhook>` in a way that the agent cannot follow.',
    remedy: 'Read the message. To run a package again, remove its entry; to run all of them, remove the annotation.',
  },
  InterruptCompleted: { type: 'Normal', meaning: 'The interrupt (reboot, service restarts, …) is done.' },
  InterruptRequired: {
    type: 'Normal',
    meaning: 'A package with `when: required` reported that it needs its interrupt; the node drains for it.',
  },
  RebootSkipped: {
    type: 'Normal',
    meaning: 'The host lost its disk after it had rebooted for this spec; it does not reboot again.',
  },
  UninstallFailed: {
    type: 'Warning',
    meaning:
      'The uninstall of a package that left the spec failed three times. What it left on the host stays there, the ' +
      'annotation `nodeState_<skyhook>` shows `uninstall/unknown`, and the agent does not try again.',
    remedy:
      'Put the package back with a configuration that it can be uninstalled with and remove it again, or clean the ' +
      'host by hand and remove its entry from the annotation.',
  },
  StepOutcomeUnknown: {
    type: 'Warning',
    meaning: 'Nothing recorded how a step ended, for example after a power cut. The agent repeats the step.',
    remedy: 'Check that the step can be repeated safely.',
  },
  CordonChanged: {
    type: 'Warning',
    meaning: 'Someone else cordoned or uncordoned the node while the Skyhook holds it.',
    remedy: 'To keep the node cordoned afterwards, annotate it with `skyhook.nvidia.com/keep-cordoned=true`.',
  },
  PodDeleted: {
    type: 'Warning',
    meaning:
      'The pod in the message did not leave within `drain.timeoutSeconds`; the agent deleted it regardless of its ' +
      'disruption budget.',
    remedy: 'To wait for such pods instead, set `drain.onTimeout: wait`.',
  },
  HostStateLost: {
    type: 'Warning',
    meaning: 'The host has no readable journal of the work that the Node shows. All packages run again.',
    remedy: 'Find out whether the disk was replaced, wiped or damaged.',
  },
  OperatorWorkAdopted: {
    type: 'Normal',
    meaning: 'The agent adopted the work of the Skyhook operator on this node.',
  },
} as const satisfies Record<string, EventRow>

/** Events on a Skyhook, written by the census; it summarizes there what many nodes report. */
export const skyhookEvents = {
  Complete: { type: 'Normal', meaning: 'The condition `Ready` became True: all selected nodes are complete.' },
  Incomplete: {
    type: 'Normal',
    meaning:
      'The condition `Ready` became False or Unknown without an edit of the Skyhook, for example because a node ' +
      'joined.',
  },
  NodesErroring: {
    type: 'Warning',
    meaning: 'Packages have failed for good, and no other node continues. The agents still retry.',
    remedy: 'Look at the [reasons](reasons.md) in the message.',
  },
  NodesBlocked: {
    type: 'Warning',
    meaning: 'A setting keeps at least one node out, and no package fails.',
    remedy: 'Look at the [reasons](reasons.md) in the message.',
  },
  RolloutStopped: {
    type: 'Warning',
    meaning:
      'As many batches in a row have failed as the DeploymentPolicy allows. Nodes that have started continue, and no ' +
      'other node starts.',
    remedy: 'Fix the package, then set the annotation `skyhook.nvidia.com/reset-batches` to another text.',
  },
  FailedNodesHoldBudget: {
    type: 'Warning',
    meaning: 'Nodes that have failed for good hold the whole budget or keep the batch open, and other nodes wait.',
    remedy: 'Look at the [reasons](reasons.md) of the named nodes.',
  },
  SilentNodesKeepSlots: {
    type: 'Warning',
    meaning:
      'Nodes that were at work have had no Ready agent for ten minutes. They keep their slots, and nothing continues.',
    remedy: 'Bring the nodes in the message back, or [delete their Nodes](operations.md#nodes-and-hosts).',
  },
  DeploymentPolicyNotFound: {
    type: 'Warning',
    meaning: 'The DeploymentPolicy that the Skyhook names has not existed for two minutes. No node starts for it.',
    remedy: 'Create the policy, or change `spec.deploymentPolicy`.',
  },
  DeploymentPolicyUnknown: {
    type: 'Warning',
    meaning: 'The DeploymentPolicies cannot be read. No node starts for the Skyhook.',
    remedy: 'Follow the message: most often a permission is missing.',
  },
  DeletionBlocked: {
    type: 'Warning',
    meaning:
      'The Skyhook is being deleted, and the annotation `pause` or `disable`, or the label `ignore` of the nodes, ' +
      'prevents the uninstall.',
    remedy: 'Remove what the message names.',
  },
  ImageTagIgnored: {
    type: 'Warning',
    meaning:
      'The image of a package has a tag other than its `version`. The version is pulled, and the tag is ignored.',
    remedy: 'Remove the tag from `image`, or correct `version`.',
  },
  AgentNotReady: {
    type: 'Warning',
    meaning: 'The named nodes have had no Ready agent for ten minutes; what they last reported may be outdated.',
    remedy: 'Look at these nodes and their agent pods.',
  },
  UninstallSkipped: {
    type: 'Warning',
    meaning:
      'The Skyhook was deleted while the named nodes had no Ready agent. Its packages are still installed there.',
    remedy: 'Remove the packages by hand, or discard the nodes.',
  },
} as const satisfies Record<string, EventRow>

export type NodeEventReason = keyof typeof nodeEvents | ReasonName
export type SkyhookEventReason = keyof typeof skyhookEvents | SkyhookConditionReason<'Stalled'>

/** Reasons of nodes are all Warnings: the harmless ones are not reported. */
export function eventTypeOf(reason: string): 'Normal' | 'Warning' {
  const rows: Readonly<Record<string, EventRow>> = { ...nodeEvents, ...skyhookEvents }
  return rows[reason]?.type ?? 'Warning'
}
