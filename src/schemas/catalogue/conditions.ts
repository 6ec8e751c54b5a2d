/** Every condition of Nodes and Skyhooks. `make generate` writes docs/usage/conditions.md from it. */
type ConditionRow = {
  /** Who introduced it: conditions of the Skyhook operator stay as other tools know them. */
  readonly origin: 'operator' | 'skyhookd'
  readonly meaning: string
  /** Status and meaning of each reason. */
  readonly reasons: Readonly<Record<string, readonly ['True' | 'False' | 'Unknown' | 'True or False', string]>>
}

type Reasons = ConditionRow['reasons']

const ofOperator = <const R extends Reasons>(meaning: string, reasons: R) =>
  ({ origin: 'operator', meaning, reasons }) as const
const ofAgents = <const R extends Reasons>(meaning: string, reasons: R) =>
  ({ origin: 'skyhookd', meaning, reasons }) as const

/** By type, with placeholders for names; schemas/annotations.ts builds the types. */
export const nodeConditions = {
  'skyhook.nvidia.com/<skyhook>/NotReady': ofOperator('Whether the node still has work to do for the Skyhook.', {
    Complete: ['False', 'All packages are complete.'],
    Incomplete: ['True', 'Some package is not complete; see the [reason](reasons.md).'],
  }),
  'skyhook.nvidia.com/<skyhook>/Erroring': ofOperator('Whether a package of the Skyhook fails on the node.', {
    'Package(s) Erroring or Unknown': ['True', 'The status of the node is `erroring`; see the [reason](reasons.md).'],
    'Not Erroring': ['False', 'No package fails.'],
  }),
  'skyhook.nvidia.com/<skyhook>/<package>': ofAgents(
    'What a package reports in its [status file](skyhook.md#what-packages-report).',
    {
      InterruptRequired: ['True', 'The package needs its interrupt.'],
      RunRequested: ['True', 'The package requests a run of config.'],
      NoActionRequired: ['False', 'The package requests nothing.'],
      StaleSinceBoot: ['Unknown', 'The host has booted since the package wrote its status file.'],
      StatusInvalid: ['Unknown', 'The agent cannot use the status file; the message says why.'],
    },
  ),
  'skyhook.nvidia.com/RuntimeRequired': ofAgents(
    'The [taint of new nodes](skyhook.md#new-nodes) stays: no Skyhook lifts it. The condition goes with the ' +
      'taint, or when a Skyhook with `runtimeRequired` selects the node.',
    {
      RuntimeRequired: [
        'True',
        'No Skyhook with `runtimeRequired` selects the node. The message has the taint, and up to three such ' +
          'Skyhooks whose `nodeSelectors` do not match.',
      ],
    },
  ),
} as const satisfies Record<string, ConditionRow>

/** `Ready`, `Reconciling` and `Stalled` follow kstatus, so that `kubectl wait` and GitOps tools understand them. */
export const skyhookConditions = {
  Ready: ofAgents('True when all selected nodes are complete for the current spec.', {
    Complete: ['True', 'All selected nodes are complete.'],
    NoNodeSelected: ['True', '`spec.nodeSelectors` matches no node, for example a pool that is scaled to zero.'],
    InProgress: ['False', 'At least one node is in progress.'],
    Waiting: ['False', 'Nodes wait, for example for a slot; none is in progress, failing or blocked.'],
    NodesErroring: ['False', 'A package fails on at least one node, and no node is in progress.'],
    NodesBlocked: ['False', 'A setting keeps at least one node out; none is in progress or failing.'],
    Paused: ['False', 'The Skyhook is paused.'],
    Disabled: ['False', 'The Skyhook is disabled.'],
    InvalidSpec: ['False', 'The spec has an error; the message has the path.'],
    SpecChanged: ['False', 'The spec has just changed, and nodes may not have observed it yet.'],
    Deleting: ['False', 'The Skyhook is being deleted; the message names the nodes that still uninstall.'],
    NodesUnknown: ['Unknown', 'The agents of all incomplete nodes do not answer.'],
  }),
  Reconciling: ofAgents(
    'True while work continues by itself, otherwise False. The reason is that of `Ready` or one of these two.',
    {
      Complete: ['False', 'Nothing is left to do.'],
      Stalled: ['False', 'Nothing continues; see `Stalled`.'],
    },
  ),
  Stalled: ofAgents(
    'True when the Skyhook will not complete by itself: nodes have failed for good, and nothing continues beside ' +
      'them. The column *Stalls* of the [reasons](reasons.md) shows when a node has failed for good.',
    {
      NotStalled: ['False', 'Work continues, is tried again, or is complete.'],
      NodesErroring: ['True', 'Packages have failed for good; the message has nodes and [reasons](reasons.md).'],
      NodesBlocked: ['True', 'A setting keeps nodes out; the message has nodes and [reasons](reasons.md).'],
      InvalidSpec: ['True', 'The spec has an error; correct it at the path in the message.'],
      RolloutStopped: [
        'True',
        'As many batches in a row have failed as the policy allows. The message has batch and nodes. No node starts ' +
          'until the annotation `skyhook.nvidia.com/reset-batches` gets another text.',
      ],
      FailedNodesHoldBudget: [
        'True',
        'Nodes that have failed for good hold the whole budget or keep the batch open, and other nodes wait.',
      ],
      SilentNodesKeepSlots: [
        'True',
        'Nodes that were at work have had no Ready agent for ten minutes, and nothing continues beside them: they ' +
          'hold the whole budget or the open batch, or are the last ones. Bring them back, or delete their Nodes.',
      ],
      DeploymentPolicyNotFound: ['True', 'The DeploymentPolicy that the spec names has not existed for two minutes.'],
      DeploymentPolicyUnknown: [
        'True',
        'The API server does not let the DeploymentPolicies be read, so no node starts. The message has its answer.',
      ],
      DeletionBlocked: [
        'True',
        'The annotation `pause` or `disable`, or the label `ignore` of the nodes, prevents the uninstall; remove it.',
      ],
    },
  ),
  'skyhook.nvidia.com/Converged': ofAgents(
    'Whether all nodes selected at some time were complete for the generation in `observedGeneration`. Nodes that ' +
      'join later are in `nodesPending` until they start and make `Ready` False; this condition stays True until the ' +
      'next edit.',
    {
      Converged: ['True', 'All nodes selected at that time completed this generation.'],
      NotConverged: ['False', 'That has not been the case since the last edit.'],
    },
  ),
  'skyhook.nvidia.com/DrainBlocked': ofAgents('Whether pods that do not leave block the drain of nodes.', {
    DrainBlocked: [
      'True',
      'The message names up to five nodes, the one blocked for the longest time first, with their pods and ' +
        'what keeps these.',
    ],
    NotBlocked: ['False', 'No drain is blocked.'],
  }),
  'skyhook.nvidia.com/UninstallFailed': ofAgents('Whether a package cannot be uninstalled from nodes.', {
    UninstallFailed: [
      'True',
      'The message names nodes and packages: those that the agents gave up, whose files stay on the host, and ' +
        'those that they try again.',
    ],
    NotFailed: ['False', 'No uninstall has failed.'],
  }),
  'skyhook.nvidia.com/Transition': ofOperator('The last change of `.status.status`. The reason is the new status.', {
    complete: ['True', 'All selected nodes are complete.'],
    in_progress: ['False', 'At least one node is in progress.'],
    erroring: ['False', 'A package fails on at least one node, and no node is in progress.'],
    blocked: ['False', 'A setting keeps at least one node out; none is in progress or failing.'],
    waiting: ['False', 'Nodes wait; none is in progress, failing or blocked.'],
    paused: ['False', 'The Skyhook is paused.'],
    disabled: ['False', 'The Skyhook is disabled.'],
    unknown: ['False', 'The agents of all incomplete nodes do not answer.'],
  }),
  'skyhook.nvidia.com/ApplyPackage': ofOperator('The last package that started on a node.', {
    ApplyPackage: ['True', 'The message names package and node.'],
  }),
  'skyhook.nvidia.com/TaintNotTolerable': ofOperator('Whether nodes have taints that the Skyhook does not tolerate.', {
    TaintNotTolerable: ['True or False', 'The message names the nodes.'],
  }),
  'skyhook.nvidia.com/DeploymentPolicyNotFound': ofOperator(
    'The DeploymentPolicy that the spec names does not exist. The condition goes when it does.',
    { DeploymentPolicyNotFound: ['True', 'The message names the policy.'] },
  ),
  'skyhook.nvidia.com/NodesIgnored': ofOperator('Whether nodes have the label `skyhook.nvidia.com/ignore`.', {
    NodesIgnored: ['True or False', 'The message names the nodes.'],
  }),
} as const satisfies Record<string, ConditionRow>

type NodeConditions = typeof nodeConditions
type SkyhookConditions = typeof skyhookConditions
export type SkyhookConditionType = keyof SkyhookConditions

/** Reasons of all conditions of Nodes. */
export type NodeConditionReason = {
  [Type in keyof NodeConditions]: keyof NodeConditions[Type]['reasons']
}[keyof NodeConditions]

/** Reasons of a Skyhook's condition. */
export type SkyhookConditionReason<Type extends SkyhookConditionType> =
  | keyof SkyhookConditions[Type]['reasons']
  | (Type extends 'Reconciling' ? keyof SkyhookConditions['Ready']['reasons'] : never)
