/** A reason of the decision, as a closed gate: which one, what it is about, and how to open it. */
import { ignoreLabel } from '../../schemas/annotations.ts'
import { type Reason, type ReasonName, reasons } from '../../schemas/catalogue/reasons.ts'
import type { SkyhookRecord } from '../../schemas/journal.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { ignoreNodeWrightCommand } from '../../schemas/nodewright.ts'
import type { PackageSpec, Skyhook } from '../../schemas/skyhook.ts'
import type { Cause, Finding, GateName, ObjectName } from './finding.ts'
import { imageRemedyOf } from './image-error-kind.ts'
import { ownValue } from '../../schemas/own-value.ts'

export type ReasonContext = {
  readonly skyhook: Skyhook
  readonly node: KubernetesNode
  readonly namespace: string
  readonly record: SkyhookRecord | undefined
  /** Since when the reason holds, as far as anything says so. */
  readonly sinceMs: number | undefined
  /** The Skyhook that comes first. */
  readonly preceding: string | undefined
  /** The package that it is about, where it is known. */
  readonly packageName?: string | undefined
}

type Row = { readonly gate: GateName; readonly cause: Cause; readonly unblock?: string; readonly command?: string }

/** Slots and pods are looked at by those who know them: slot-finding.ts, drain-finding.ts. */
export function reasonFinding({ reason, message }: Reason, context: ReasonContext): Finding {
  const { gate, cause, unblock, command } = rowOf(reason, message, context)
  return {
    gate,
    cause,
    message,
    objects: objectsOf(cause, context),
    sinceMs: context.sinceMs,
    unblock: unblock ?? plain(reasons[reason].remedy),
    command: command ?? `kubectl get skyhook ${context.skyhook.metadata.name} -o yaml`,
  }
}

function rowOf(reason: ReasonName, message: string, context: ReasonContext): Row {
  const { skyhook, node, namespace, preceding } = context
  const { name } = skyhook.metadata
  const nodeName = node.metadata.name
  const logs = logCommand(context)
  const explainHost = `kubectl skyhook doctor --node ${nodeName}`
  switch (reason) {
    case 'Ignored':
      return {
        gate: 'ignored',
        cause: 'ignored',
        unblock: `remove the label ${ignoreLabel}`,
        command: `kubectl skyhook node unignore ${nodeName}`,
      }
    case 'Disabled':
      return {
        gate: 'disabled',
        cause: 'disabled',
        unblock: 'enable the Skyhook',
        command: `kubectl skyhook enable ${name}`,
      }
    case 'Paused':
      return {
        gate: 'paused',
        cause: 'paused',
        unblock: 'resume the Skyhook',
        command: `kubectl skyhook resume ${name}`,
      }
    case 'InvalidSpec':
      return {
        gate: context.packageName === undefined ? 'spec' : 'package',
        cause: 'invalid-spec',
        command: `kubectl edit skyhook ${name}`,
      }
    case 'DeploymentPolicyNotFound':
      return {
        gate: 'policy',
        cause: 'policy-missing',
        unblock: `create the DeploymentPolicy ${skyhook.spec.deploymentPolicy ?? ''}, or change spec.deploymentPolicy`,
        command: 'kubectl get deploymentpolicies',
      }
    case 'WaitingForPriority':
      return {
        gate: 'priority',
        cause: 'earlier-skyhook',
        unblock: `Skyhook ${preceding ?? ''} has to complete on this node, or be disabled`,
        command: `kubectl skyhook explain ${preceding ?? ''} ${nodeName}`,
      }
    case 'HostUnusable':
      return { gate: 'host', cause: 'host-unusable', command: explainHost }
    case 'HostUnreachable':
      return { gate: 'host', cause: 'host-unreachable', command: explainHost }
    case 'CrashLoop':
      return {
        gate: 'host',
        cause: 'crash-loop',
        command: `kubectl -n ${namespace} get pods -l app.kubernetes.io/name=skyhookd ${onNode(nodeName)}`,
      }
    case 'TaintNotTolerated':
      return { gate: 'taint', cause: 'taint', command: `kubectl describe node ${nodeName} | grep -A5 Taints` }
    case 'ImagePull':
      return {
        gate: 'package',
        cause: 'image-pull',
        ...imageRemedyOf(message, { skyhook: name, namespace, image: specOf(context)?.image ?? '' }),
      }
    case 'InvalidPackage':
      return { gate: 'package', cause: 'invalid-package', command: `kubectl skyhook validate ${imageOf(context)}` }
    case 'ReferenceMissing':
      return { gate: 'package', cause: 'reference-missing', command: `kubectl -n ${namespace} get secrets,configmaps` }
    case 'Preparing':
      return { gate: 'package', cause: 'preparing', command: logs }
    case 'WaitingForSlot':
      return {
        gate: 'slot',
        cause: 'next-in-line',
        unblock: 'wait for a slot',
        command: `kubectl skyhook status ${name}`,
      }
    case 'WaitingForBatch':
      return { gate: 'slot', cause: 'batch', command: `kubectl skyhook status ${name}` }
    case 'ProtectedPods':
      return { gate: 'drain', cause: 'protected-pod', command: podsCommand(nodeName) }
    case 'DrainBlocked':
      return { gate: 'drain', cause: 'pods-ending', command: podsCommand(nodeName) }
    case 'StepFailed':
      return isUninstalling(context) ? uninstallRow(context) : { gate: 'work', cause: 'step-failing', command: logs }
    case 'CheckFailed':
      return isUninstalling(context) ? uninstallRow(context) : { gate: 'work', cause: 'check-failing', command: logs }
    case 'WaitingForOtherSkyhook':
      return { gate: 'interrupt', cause: 'other-skyhook', command: `kubectl skyhook node status ${nodeName}` }
    case 'RebootPending':
      return { gate: 'interrupt', cause: 'reboot-pending', command: `kubectl get node ${nodeName} -w` }
    case 'RebootRefused':
      return { gate: 'interrupt', cause: 'reboot-refused', command: 'systemd-inhibit --list # on the host' }
    case 'RebootLoop':
      return { gate: 'interrupt', cause: 'reboot-loop', command: logs }
    case 'NodeNotReady':
      return { gate: 'ready', cause: 'node-not-ready', command: `kubectl describe node ${nodeName}` }
    case 'ApiServerUnavailable':
    case 'ApiRequestRefused':
      return { gate: 'agent', cause: 'api-server', command: `kubectl -n ${namespace} get events` }
    case 'InternalError':
      return { gate: 'agent', cause: 'internal-error', command: logs }
    case 'Soaking':
      return { gate: 'soak', cause: 'soaking', command: `kubectl skyhook status ${name}` }
    case 'Takeover':
      return { gate: 'agent', cause: 'takeover', ...takeoverRemedyOf(message, context) }
  }
}

/** Pods go when they have ended; of another operator's record a person says whether it counts. */
function takeoverRemedyOf(message: string, { skyhook, node }: ReasonContext): Pick<Row, 'unblock' | 'command'> {
  const command = ignoreNodeWrightCommand(skyhook.metadata.name)
  return message.endsWith(command)
    ? { unblock: 'decide whether what another operator did here counts (docs/usage/takeover.md)', command }
    : { command: podsCommand(node.metadata.name) }
}

function uninstallRow(context: ReasonContext): Row {
  const name = context.packageName ?? failingPackage(context)?.name ?? ''
  return {
    gate: 'work',
    cause: 'uninstall-failing',
    unblock: 'fix the package, or drop what is left of it',
    command: `kubectl skyhook reset ${context.skyhook.metadata.name} --package ${name}`,
  }
}

const onNode = (nodeName: string): string => `--field-selector spec.nodeName=${nodeName}`
const podsCommand = (nodeName: string): string => `kubectl get pods -A -o wide ${onNode(nodeName)}`

function logCommand(context: ReasonContext): string {
  const { skyhook, node } = context
  const failing = failingPackage(context)
  const name = context.packageName ?? failing?.name
  return [
    `kubectl skyhook logs ${skyhook.metadata.name} --node ${node.metadata.name}`,
    ...(name === undefined ? [] : [`--package ${name}`]),
    ...(failing === undefined ? [] : [`--stage ${failing.progress.stage}`]),
  ].join(' ')
}

const failingPackage = ({ record, packageName }: ReasonContext) =>
  Object.values(record?.packages ?? {}).find(
    ({ name, progress }) => progress.state === 'retrying' && (packageName === undefined || packageName === name),
  )

const isUninstalling = (context: ReasonContext): boolean => failingPackage(context)?.progress.stage === 'uninstall'

const specOf = ({ skyhook, packageName = '' }: ReasonContext): PackageSpec | undefined =>
  ownValue(skyhook.spec.packages, packageName)

function imageOf(context: ReasonContext): string {
  const spec = specOf(context)
  return spec ? `${spec.image}:${spec.version}` : 'IMAGE'
}

function objectsOf(cause: Cause, context: ReasonContext): readonly ObjectName[] {
  const { skyhook, node, preceding } = context
  const ofNode: ObjectName = { kind: 'Node', name: node.metadata.name }
  const ofSkyhook: ObjectName = { kind: 'Skyhook', name: skyhook.metadata.name }
  if (cause === 'earlier-skyhook') return [{ kind: 'Skyhook', name: preceding ?? '' }]
  if (cause === 'policy-missing') return [{ kind: 'DeploymentPolicy', name: skyhook.spec.deploymentPolicy ?? '' }]
  const name = context.packageName ?? failingPackage(context)?.name
  if (packageCauses.has(cause) && name !== undefined) return [{ kind: 'Package', name }, ofNode]
  return [skyhookCauses.has(cause) ? ofSkyhook : ofNode]
}

const skyhookCauses: ReadonlySet<Cause> = new Set(['paused', 'disabled', 'invalid-spec'])
const packageCauses: ReadonlySet<Cause> = new Set([
  'invalid-spec',
  'image-pull',
  'invalid-package',
  'reference-missing',
  'step-failing',
  'check-failing',
  'uninstall-failing',
  'reboot-loop',
])

/** Remedies of the reference page have links, which mean nothing in a terminal. */
const plain = (text: string): string => text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')
