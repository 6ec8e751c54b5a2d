/** Converts a reason of the decision to a closed gate: which one, what it is about, and how to open it. */
import { ImageError } from '../../../packages/oci/errors.ts'
import { parseReference } from '../../../packages/oci/reference.ts'
import { type Remedy, reasonCodes } from '../../../schemas/catalogue/reason-codes.ts'
import { type ReasonName, reasons } from '../../../schemas/catalogue/reasons.ts'
import type { Reason } from '../../../schemas/catalogue/reason.ts'
import type { SkyhookRecord } from '../../../schemas/journal.ts'
import { ownValue } from '../../../schemas/json.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { PackageSpec, Skyhook } from '../../../schemas/skyhook.ts'
import type { Cause, Finding, ObjectName } from './finding.ts'
import { tolerates } from '../../../schemas/selectors.ts'
import { isKubernetesTaint } from '../../../stages/drain/node-spec.ts'

export type ReasonContext = {
  readonly skyhook: Skyhook
  readonly node: KubernetesNode
  readonly namespace: string
  readonly record: SkyhookRecord | undefined
  /** Since when the reason holds, if known. */
  readonly sinceMs: number | undefined
  /** The Skyhook that comes first. */
  readonly preceding: string | undefined
  /** Its package, if known. */
  readonly packageName?: string | undefined
}

/** Slots and pods have their own: slot-finding.ts, drain-finding.ts. */
export function reasonFinding({ reason, message, code }: Reason, context: ReasonContext): Finding {
  const values = valuesOf(context)
  const { explain, remedy: ofPage } = reasons[reason]
  const { gate, cause, remedy, command } = {
    remedy: ofPage,
    ...explain,
    ...(code && reasonCodes[code]),
    ...specialOf(reason, context),
  }
  return {
    gate,
    cause,
    message,
    objects: objectsOf(cause, context),
    sinceMs: context.sinceMs,
    unblock: filled(plain(remedy), values),
    command: filled(command, values),
  }
}

/** What the name of the reason leaves open. */
function specialOf(reason: ReasonName, context: ReasonContext): Partial<Pick<Finding, 'gate' | 'cause'> & Remedy> {
  if (reason === 'InvalidSpec' && context.packageName !== undefined) return { gate: 'package' }
  if (reason === 'TaintNotTolerated' && isTaintedByKubernetes(context))
    return {
      remedy: 'fix the cause of the taint, which the conditions of the node report: Kubernetes then removes the taint',
      command: 'kubectl describe node "$NODE"',
    }
  if (reason === 'NodeNotReady' && context.record?.lifecycle === undefined)
    return { remedy: 'the node must be Ready: look at the kubelet on the host, and at the network of the node' }
  if (reason === 'CheckFailed' && specOf(context)?.interrupt?.when === 'required')
    return {
      remedy:
        'read the log, then fix the package; remove when: required from its interrupt if it writes no status file',
    }
  const isStep = reason === 'StepFailed' || reason === 'CheckFailed'
  if (!isStep || failingPackage(context)?.progress.stage !== 'uninstall') return {}
  return {
    cause: 'uninstall-failing',
    remedy: 'fix the package, or drop what is left of it',
    command: 'kubectl skyhook reset "$SKYHOOK" --package "$PACKAGE"',
  }
}

function isTaintedByKubernetes({ node, skyhook }: ReasonContext): boolean {
  const taints = (node.spec?.taints ?? []).filter(
    (one) => one.effect !== 'PreferNoSchedule' && !tolerates(skyhook.spec.additionalTolerations ?? [], one),
  )
  return taints.length > 0 && taints.every(isKubernetesTaint)
}

type Values = Readonly<Record<string, string | undefined>>

/** Of the variables that commands of the catalogue have. */
function valuesOf(context: ReasonContext): Values {
  const { skyhook, node, namespace, preceding } = context
  const failing = failingPackage(context)
  const spec = specOf(context)
  return {
    SKYHOOK: skyhook.metadata.name,
    NODE: node.metadata.name,
    NAMESPACE: namespace,
    PACKAGE: context.packageName ?? failing?.name,
    STAGE: failing?.progress.stage,
    OTHER: preceding,
    POLICY: skyhook.spec.deploymentPolicy,
    IMAGE: spec && `${spec.image}:${spec.version}`,
    REGISTRY: spec && registryOf(spec),
  }
}

/** An option with an unknown value is left out. Elsewhere the name of the variable stays. */
const filled = (text: string, values: Values): string =>
  text
    .replaceAll(/ --[a-z]+ "\$([A-Z]+)"/g, (option, name: string) => (values[name] === undefined ? '' : option))
    .replaceAll(
      /"([^"$]*)\$([A-Z]+)([^"]*)"/g,
      (_, before: string, name: string, after: string) => `${before}${values[name] ?? name}${after}`,
    )

const failingPackage = ({ record, packageName }: ReasonContext) =>
  Object.values(record?.packages ?? {}).find(
    ({ name, progress }) => progress.state === 'retrying' && (packageName === undefined || packageName === name),
  )

const specOf = ({ skyhook, packageName = '' }: ReasonContext): PackageSpec | undefined =>
  ownValue(skyhook.spec.packages, packageName)

/** Host of the registry; undefined for an invalid image name. */
function registryOf({ image }: PackageSpec): string | undefined {
  try {
    const { host } = parseReference(image)
    return host === 'docker.io' ? 'registry-1.docker.io' : host
  } catch (error) {
    if (error instanceof ImageError) return undefined
    throw error
  }
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

/** Remedies of the reference page have links, which are useless in a terminal. */
const plain = (text: string): string => text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')
