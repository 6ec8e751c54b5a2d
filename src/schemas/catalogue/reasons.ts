/**
 * Why a node is not complete for a Skyhook, and what to do. `kubectl skyhook explain` uses it, and `make generate`
 * writes the tables of docs/usage/reasons.md and docs/usage/operations.md from it.
 */
import { ignoreLabel } from '../annotations.ts'
import type { NodeStatus } from '../skyhook.ts'
import type { ClosedGate } from './reason-codes.ts'

export type ReasonRow = {
  /** Part of the reference page: waits that end by themselves, failures, and settings that keep a node out. */
  readonly section: 'waiting' | 'failing' | 'blocked'
  /** The operator's status of the node while the reason lasts; `by-slot`: in_progress with a slot, else waiting. */
  readonly status: NodeStatus | 'by-slot'
  /** Objects on which a lasting reason becomes a Warning. A healthy rollout writes none; the fleet reports less. */
  readonly eventOn: readonly ('Node' | 'Skyhook')[]
  readonly meaning: string
  readonly remedy: string
  readonly explain: ClosedGate
}

const ofSkyhook = 'kubectl skyhook status "$SKYHOOK"'
const ofHost = 'kubectl skyhook doctor --node "$NODE"'
const describeNode = 'kubectl describe node "$NODE"'
const onNode = '--field-selector "spec.nodeName=$NODE"'
const listPods = `kubectl get pods -A -o wide ${onNode}`
const logs = 'kubectl skyhook logs "$SKYHOOK" --node "$NODE" --package "$PACKAGE" --stage "$STAGE"'

/** The usual columns of each section; rows name their exceptions. */
const passing = { section: 'waiting', status: 'by-slot', eventOn: [] } as const
const failing = { section: 'failing', status: 'erroring', eventOn: ['Node', 'Skyhook'] } as const
const blocked = { section: 'blocked', status: 'blocked', eventOn: ['Node', 'Skyhook'] } as const

export const reasons = {
  Preparing: {
    ...passing,
    meaning: 'The agent fetches and checks the package images.',
    remedy: "If it lasts, look at the agent's log on that node and at the registry.",
    explain: { gate: 'package', cause: 'preparing', command: logs },
  },
  WaitingForSlot: {
    ...passing,
    status: 'waiting',
    meaning:
      'The interruption budget is used up, or another node of the control plane is out of service. ' +
      'Or a package asks for an uninstall, and the census has not added the finalizer yet. ' +
      '`kubectl get leases` shows which nodes hold the slots. A node at work also has this reason if someone keeps ' +
      'deleting its slot, or the API server rejects it.',
    remedy: 'Look at the reasons of those nodes; see [below](#waiting-for-a-slot).',
    explain: { gate: 'slot', cause: 'next-in-line', command: ofSkyhook, remedy: 'wait for a slot' },
  },
  WaitingForPriority: {
    ...passing,
    status: 'waiting',
    meaning: 'Another Skyhook with a lower `priority`, or an earlier name, has work on this node.',
    remedy: "Look at that Skyhook's reason on the same node.",
    explain: {
      gate: 'priority',
      cause: 'earlier-skyhook',
      command: 'kubectl skyhook explain "$OTHER" "$NODE"',
      remedy: 'Skyhook "$OTHER" must complete on this node, or be disabled',
    },
  },
  WaitingForOtherSkyhook: {
    ...passing,
    meaning:
      'Another Skyhook runs steps, restarts services or reboots on this node. An interrupt never runs at the same ' +
      'time as steps.',
    remedy: "Look at that Skyhook's reason on the same node.",
    explain: { gate: 'interrupt', cause: 'other-skyhook', command: 'kubectl skyhook node status "$NODE"' },
  },
  WaitingForBatch: {
    ...passing,
    status: 'waiting',
    meaning: 'The current batch of the DeploymentPolicy is not finished.',
    remedy: 'Look at the nodes of the batch.',
    explain: { gate: 'slot', cause: 'batch', command: ofSkyhook },
  },
  ProtectedPods: {
    ...passing,
    eventOn: ['Node'],
    meaning: 'Pods that match `podNonInterruptLabels` are running. The agent never evicts them.',
    remedy: 'End them when it suits you. No timeout removes them; see [below](#protected-pods).',
    explain: { gate: 'drain', cause: 'protected-pod', command: listPods },
  },
  DrainBlocked: {
    ...passing,
    eventOn: ['Node', 'Skyhook'],
    meaning:
      'Pods were asked to leave and are still running. The message names the pods, and the disruption budget, the ' +
      'webhook or the admission policy that keeps them.',
    remedy:
      "Check the PodDisruptionBudget and the workload's replicas, ask the owner of the webhook or policy, or have " +
      '`spec.drain` delete the pods at its timeout (`onTimeout: delete`).',
    explain: { gate: 'drain', cause: 'pods-ending', command: listPods },
  },
  RebootPending: {
    ...passing,
    meaning: 'The host is about to reboot, for this Skyhook or for the one in the message.',
    remedy: 'Wait: the agent asks the host every 10 s whether it is shutting down, and waits as long as it is.',
    explain: { gate: 'interrupt', cause: 'reboot-pending', command: 'kubectl get node "$NODE" -w' },
  },
  NodeNotReady: {
    ...passing,
    eventOn: ['Node'],
    meaning:
      'The node is NotReady, and nothing starts there before it is Ready. Or it has not reported Ready since its ' +
      'interrupt, or the static pods of a control-plane node, which the message names, are not Ready again.',
    remedy: 'If it lasts, look at the kubelet on the host, and at the containers of the static pods.',
    explain: { gate: 'ready', cause: 'node-not-ready', command: describeNode },
  },
  ApiServerUnavailable: {
    ...passing,
    eventOn: ['Node'],
    meaning:
      'The API server does not answer a request of the agent, or asks it to wait. The message names both. No reboot ' +
      'and no restart of services starts while the agent cannot watch the Skyhooks.',
    remedy:
      'Wait: the agent tries again after 1 to 15 seconds, or when the API server asks it to. If it lasts, look at ' +
      'the API server and the network.',
    explain: { gate: 'agent', cause: 'api-server', command: 'kubectl -n "$NAMESPACE" get events' },
  },
  Soaking: {
    ...passing,
    meaning:
      'The node is complete and back in service, and keeps its slot for the time in `spec.pace`. The Skyhook does ' +
      'not wait for it.',
    remedy:
      'Wait. If pods of a DaemonSet do not become Ready, look at them; deleting the Lease of the slot ends the wait.',
    explain: { gate: 'soak', cause: 'soaking', command: ofSkyhook },
  },
  Takeover: {
    ...passing,
    eventOn: ['Node'],
    meaning:
      'Another operator was here, and nothing starts before its work is over or a person has decided. Either a ' +
      'package pod of the Skyhook operator is still on this node, with work unfinished. Or NodeWright, or an ' +
      'operator of which only files on the host are left, worked on this Skyhook, and agents cannot continue its ' +
      'record. The message has what was found.',
    remedy:
      'Wait until the pod has ended, then delete it ([takeover](takeover.md#switch-to-skyhookd), step 4). In the ' +
      'other cases the message has the command; read [what it risks](takeover.md#nodewright) first.',
    explain: { gate: 'agent', cause: 'takeover', command: listPods },
  },
  StepFailed: {
    ...failing,
    meaning:
      'A step failed, or could not start, or a service of an interrupt did not restart; see [below](#failed-steps).',
    remedy: 'Read the log, then fix the package or its configuration and apply it.',
    explain: { gate: 'work', cause: 'step-failing', command: logs },
  },
  CheckFailed: {
    ...failing,
    meaning:
      'The steps passed and a check did not, or the status file that `when: required` needs is missing or invalid.',
    remedy:
      'Read the log, then fix the package or its configuration and apply it. Remove `when: required` from a package ' +
      'that writes no [status file](skyhook.md#what-packages-report).',
    explain: {
      gate: 'work',
      cause: 'check-failing',
      command: logs,
      remedy: 'read the log, then fix the package or its configuration and apply it',
    },
  },
  InvalidPackage: {
    ...failing,
    meaning: '`config.json` or a step file is invalid; the message names file, place and value. Nothing was run.',
    remedy: 'Build a correct image under a new version or digest.',
    explain: { gate: 'package', cause: 'invalid-package', command: 'kubectl skyhook validate "$IMAGE"' },
  },
  ImagePull: {
    ...failing,
    status: 'by-slot',
    meaning:
      "The agent cannot fetch the image; the message has the registry's answer, and the [code](#codes) says what it" +
      ' is about. A node on whose host nothing is half changed holds no slot meanwhile.',
    remedy: 'Correct the spec, or `imagePullSecrets` and `registries` of the chart ([install](install.md#registries)).',
    explain: { gate: 'package', cause: 'image-pull', command: 'kubectl edit skyhook "$SKYHOOK"' },
  },
  ReferenceMissing: {
    ...failing,
    status: 'by-slot',
    meaning:
      "A Secret or ConfigMap that the package's `env` refers to, or its key, does not exist. " +
      'A node on whose host nothing is half changed holds no slot meanwhile.',
    remedy: 'Create what the message names, or mark the reference `optional`.',
    explain: { gate: 'package', cause: 'reference-missing', command: 'kubectl -n "$NAMESPACE" get secrets,configmaps' },
  },
  RebootRefused: {
    ...failing,
    meaning:
      'A reboot was refused, by an inhibitor lock or polkit, or the host was not shutting down a minute after the ' +
      'request. The agent asks again, 5 s doubled up to 5 min, for as long as it takes. Or the host is a container ' +
      'with the boot id of its machine: then nothing of the package starts, and the node keeps its pods and no slot.',
    remedy:
      'Read the message. `systemd-inhibit --list` on the host shows which programs hold an inhibitor lock. Exclude ' +
      'containers from the `nodeSelectors` of Skyhooks that reboot.',
    explain: { gate: 'interrupt', cause: 'reboot-refused', command: 'systemd-inhibit --list # on the host' },
  },
  RebootLoop: {
    ...failing,
    meaning: 'The host made three reboots for the same packages and spec, and a fourth is due. The agent refuses it.',
    remedy: 'Fix the package: rebooting does not make its post-interrupt check pass.',
    explain: { gate: 'interrupt', cause: 'reboot-loop', command: logs },
  },
  InternalError: {
    ...failing,
    meaning:
      'The agent met an unexpected error. Running steps continue, and the agent tries again with the ' +
      'current spec. `skyhookd_decision_failures_total` and `skyhookd_action_errors_total` count them.',
    remedy: "Report the message with the agent's log.",
    explain: { gate: 'agent', cause: 'internal-error', command: logs },
  },
  TaintNotTolerated: {
    ...blocked,
    meaning: 'The node has a taint that the Skyhook does not tolerate. The message names it.',
    remedy:
      'Add it to `spec.additionalTolerations`, or remove the taint. Kubernetes lifts its own taints ' +
      '(`node.kubernetes.io/…`) when their cause is over.',
    explain: {
      gate: 'taint',
      cause: 'taint',
      command: `${describeNode} | grep -A5 Taints`,
      remedy: 'add it to spec.additionalTolerations, or remove the taint',
    },
  },
  Paused: {
    ...blocked,
    status: 'paused',
    eventOn: ['Node'],
    meaning:
      'The Skyhook has the annotation `skyhook.nvidia.com/pause: "true"`. Nodes that have started keep their slots.',
    remedy: 'Remove the annotation.',
    explain: {
      gate: 'paused',
      cause: 'paused',
      command: 'kubectl skyhook resume "$SKYHOOK"',
      remedy: 'resume the Skyhook',
    },
  },
  Disabled: {
    ...blocked,
    status: 'disabled',
    eventOn: ['Node'],
    meaning: 'The Skyhook has the annotation `skyhook.nvidia.com/disable: "true"`. Nodes that have started finish.',
    remedy: 'Remove the annotation.',
    explain: {
      gate: 'disabled',
      cause: 'disabled',
      command: 'kubectl skyhook enable "$SKYHOOK"',
      remedy: 'enable the Skyhook',
    },
  },
  Ignored: {
    ...blocked,
    eventOn: ['Node'],
    meaning: 'The Node has the label `skyhook.nvidia.com/ignore: "true"`.',
    remedy: 'Remove the label.',
    explain: {
      gate: 'ignored',
      cause: 'ignored',
      command: 'kubectl skyhook node unignore "$NODE"',
      remedy: `remove the label ${ignoreLabel}`,
    },
  },
  InvalidSpec: {
    ...blocked,
    meaning:
      'The spec has an error that the API server cannot detect, such as a cycle in `dependsOn`, a service name that ' +
      'no unit can have, or an `env` that no process can have. Or it lacks a file in `configMap` or a variable ' +
      'in `env` that the package expects. A node that has not started holds no slot meanwhile; one at work continues ' +
      'when the spec is correct.',
    remedy: 'Correct the spec as the message says.',
    explain: { gate: 'spec', cause: 'invalid-spec', command: 'kubectl edit skyhook "$SKYHOOK"' },
  },
  DeploymentPolicyNotFound: {
    ...blocked,
    meaning: 'The DeploymentPolicy that the Skyhook names does not exist.',
    remedy: 'Create it, or remove the name.',
    explain: {
      gate: 'policy',
      cause: 'policy-missing',
      command: 'kubectl get deploymentpolicies',
      remedy: 'create the DeploymentPolicy "$POLICY", or change spec.deploymentPolicy',
    },
  },
  HostUnreachable: {
    ...blocked,
    meaning: "The host's system bus, or systemd, does not answer. The agent asks again by itself.",
    remedy:
      'Check that dbus and systemd answer on the host (`systemctl list-jobs`), and that one of their sockets is ' +
      'there: `/run/dbus/system_bus_socket`, or `/run/systemd/private` on a host without a bus.',
    explain: { gate: 'host', cause: 'host-unreachable', command: ofHost },
  },
  HostUnusable: {
    ...blocked,
    meaning:
      'The host is unfit for work (see [below](#unfit-hosts)), or a file, a folder or systemd refuses what the agent ' +
      'must do, or steps run that are not in its journal. The message names the operation, the path or unit, ' +
      'and the error.',
    remedy: 'Do what the message says, such as to free space, or to look for mounts and immutable files.',
    explain: { gate: 'host', cause: 'host-unusable', command: ofHost },
  },
  CrashLoop: {
    ...blocked,
    meaning:
      "The agent's process ended five times in a row at the same place of this work, each time within ten minutes. " +
      'It starts nothing for 30 minutes, then tries once. Steps that already run continue to their end; the node ' +
      'keeps its slot.',
    remedy:
      "Read the log of the agent's previous container (`kubectl logs --previous`) and the reason for which it ended " +
      '(`kubectl describe pod`). Deleting the pod lets the agent try at once.',
    explain: {
      gate: 'host',
      cause: 'crash-loop',
      command: `kubectl -n "$NAMESPACE" get pods -l app.kubernetes.io/name=skyhookd ${onNode}`,
    },
  },
  ApiRequestRefused: {
    ...blocked,
    meaning: 'The API server refuses a request of the agent. The message names the request, the status and its answer.',
    remedy: 'Follow the message: most often a permission is missing, or an admission policy refuses the request.',
    explain: { gate: 'agent', cause: 'api-server', command: 'kubectl -n "$NAMESPACE" get events' },
  },
} as const satisfies Record<string, ReasonRow>

export type ReasonName = keyof typeof reasons

export const reasonRows: readonly (readonly [string, ReasonRow])[] = Object.entries<ReasonRow>(reasons)
