/** Which pods keep the node from being drained, and why: budgets that protect them, among others. */
import { type AdmissionRefusal, readBlockedDrain } from '../../../kube/evict.ts'
import type { KubernetesNode, LabelSelector } from '../../../schemas/kubernetes.ts'
import { selects } from '../../../schemas/selectors.ts'
import { named } from '../../../schemas/wording.ts'
import { hasMark, readCameBack } from '../../../stages/drain/drain.ts'
import { groupPods } from '../../../stages/drain/pods.ts'
import { isReadyPod, type Pod } from '../../../stages/model/pods.ts'
import type { Eviction, SkyhookView, StageSettings } from '../../../stages/model/snapshot.ts'
import type { DisruptionBudget } from '../../fleet/fleet-view/node-detail.ts'
import type { Finding, ObjectName } from './finding.ts'

const maxNames = 5

export type Drained = {
  readonly view: SkyhookView
  readonly node: KubernetesNode
  readonly pods: readonly Pod[]
  readonly budgets: readonly DisruptionBudget[]
  readonly settings: StageSettings
  /** The agent's report of an eviction that admission denies. */
  readonly denied?: string | undefined
  /** The reason on the Node: only it reports pods that came back. */
  readonly published?: string | undefined
}

/** Undefined if no pod blocks the drain. */
export function drainFinding({ view, pods, budgets, settings, denied, published = '' }: Drained): Finding | undefined {
  const cameBack = readCameBack(published)
  const groups = groupPods(pods, view.spec, {
    skipNamespaces: settings.skipNamespaces,
    cameBack: (pod) => cameBack.has(nameOf(pod)),
  })
  const found = { gate: 'drain', sinceMs: undefined } as const
  const [firstProtected] = groups.protected
  if (firstProtected !== undefined)
    return {
      ...found,
      cause: 'protected-pod',
      message: `the node waits for ${namedPods(groups.protected)} to end: protected by podNonInterruptLabels`,
      objects: groups.protected.map(objectOf),
      unblock: 'end them when it suits you: no timeout of spec.drain ends pods that podNonInterruptLabels protects',
      command: getPod(firstProtected),
    }
  const guarded = groups.toDrain
    .map((pod) => ({ pod, guards: budgetsOf(pod, budgets) }))
    .find(({ pod, guards }) => pod.metadata.deletionTimestamp === undefined && isRefusing(guards))
  if (guarded) return budgetFinding(guarded.pod, guarded.guards)
  const report = denied === undefined ? undefined : readBlockedDrain(denied)
  const deniedPod = groups.toDrain.find(
    (pod) => nameOf(pod) === report?.pod && pod.metadata.deletionTimestamp === undefined,
  )
  if (report && deniedPod) return admissionFinding(deniedPod, report.refusal)
  const [first] = groups.toDrain
  if (first === undefined) return toleratingFinding(view, groups.waited)
  const bare = groups.toDrain.filter(isBare)
  const [firstBare] = bare
  if (firstBare !== undefined)
    return {
      ...found,
      cause: 'bare-pod',
      message: `the node waits for ${namedPods(bare)} to end: no controller replaces it`,
      objects: bare.map(objectOf),
      unblock: 'the pod is being evicted and ends in its grace period; look at it if it does not',
      command: getPod(firstBare),
    }
  return {
    ...found,
    cause: 'pods-ending',
    message: `the node waits for ${namedPods(groups.toDrain)} to end`,
    objects: groups.toDrain.map(objectOf),
    unblock: 'the pods are being evicted and end in their grace periods',
    command: getPod(first),
  }
}

/** Of the node that the Skyhook has cordoned: they tolerate the cordon, and the interrupt ends them without a wait. */
export function leftPods({
  skyhook,
  node,
  pods,
  settings,
}: {
  readonly skyhook: Pick<SkyhookView, 'metadata' | 'spec'>
  readonly node: KubernetesNode
  readonly pods: readonly Pod[]
  readonly settings: StageSettings
}): { readonly left?: readonly string[] } {
  if (!hasMark(node, skyhook.metadata.name)) return {}
  const { left } = groupPods(pods, skyhook.spec, settings)
  return left.length === 0 ? {} : { left: left.map(nameOf).toSorted() }
}

function toleratingFinding({ metadata, spec }: SkyhookView, waited: readonly Pod[]): Finding | undefined {
  const [first] = waited
  if (first === undefined) return undefined
  const isAsked = spec.drain?.tolerating === 'wait'
  const why = isAsked
    ? 'spec.drain.tolerating is wait'
    : 'another one was evicted, and these were placed on the cordoned node, which they tolerate'
  return {
    gate: 'drain',
    cause: 'tolerating-pod',
    sinceMs: undefined,
    message: `the node waits for ${namedPods(waited)} to end: ${why}`,
    objects: waited.map(objectOf),
    unblock:
      'end them when it suits you, let their controller keep them off cordoned nodes, or let the interrupt end them: ' +
      `kubectl patch skyhook ${metadata.name} --type merge -p '{"spec":{"drain":{"tolerating":"leave"}}}'`,
    command: getPod(first),
  }
}

/** Two budgets for one pod make the API server refuse each eviction. */
const isRefusing = (guards: readonly DisruptionBudget[]): boolean =>
  guards.length > 1 || guards.some(({ disruptionsAllowed }) => disruptionsAllowed <= 0)

function budgetFinding(pod: Pod, guards: readonly DisruptionBudget[]): Finding {
  const found = { gate: 'drain', cause: 'disruption-budget', sinceMs: undefined } as const
  const refs = guards.map(({ namespace, name }) => ({ kind: 'PodDisruptionBudget', namespace, name }))
  const [first] = guards
  const name = nameOf(pod)
  if (first === undefined || guards.length > 1)
    return {
      ...found,
      message:
        `pod ${name} cannot be evicted: more than one PodDisruptionBudget selects it ` +
        `(${guards.map((guard) => guard.name).join(', ')})`,
      objects: [...refs, objectOf(pod)],
      unblock: 'make all but one of them select other pods',
      command: `kubectl -n ${pod.metadata.namespace} get poddisruptionbudgets`,
    }
  const { currentHealthy, desiredHealthy, expectedPods, disruptionsAllowed } = first
  return {
    ...found,
    message:
      `pod ${name} may not leave: PodDisruptionBudget ${first.namespace}/${first.name} allows ${disruptionsAllowed} ` +
      `disruptions, it counts ${currentHealthy} healthy of ${expectedPods} pods and needs ${desiredHealthy}`,
    objects: [...refs, objectOf(pod)],
    unblock: `${isReadyPod(pod) ? '' : unhealthyWayOut}more healthy replicas, a wider budget, or ${deletion}`,
    command: `kubectl -n ${first.namespace} describe poddisruptionbudget ${first.name}`,
  }
}

/** A pod that crashes again and again counts in the budget that keeps it. */
const unhealthyWayOut =
  'spec.unhealthyPodEvictionPolicy: AlwaysAllow of the budget, because the pod itself is not Ready; or '

/** A timeout alone changes nothing: `onTimeout: wait` is the default. */
const deletion = 'spec.drain with timeoutSeconds and onTimeout: delete (drain.allowDelete of the chart)'

const listWebhooks =
  'kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations ' +
  "-o custom-columns='KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name'"

function admissionFinding(pod: Pod, { by, name, what, detail }: AdmissionRefusal): Finding {
  const isPolicy = by === 'policy'
  const who = `${isPolicy ? 'ValidatingAdmissionPolicy' : 'admission webhook'} ${name}`
  const answer = detail === '' ? '' : `: ${detail}`
  return {
    gate: 'drain',
    cause: 'eviction-denied',
    sinceMs: undefined,
    message:
      what === 'denied'
        ? `pod ${nameOf(pod)} may not leave: ${who} denies its eviction${answer}`
        : `pod ${nameOf(pod)} is not evicted: ${who} cannot be asked${answer}`,
    objects: [...(isPolicy ? [{ kind: 'ValidatingAdmissionPolicy', name }] : []), objectOf(pod)],
    unblock:
      what === 'denied'
        ? 'what denies it may be moving the pod itself: wait, or ask its owner; or ' + deletion
        : 'repair the service of the webhook, or have its owner remove the webhook',
    command: isPolicy ? `kubectl get validatingadmissionpolicy ${name} -o yaml` : listWebhooks,
  }
}

const nameOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`
const objectOf = ({ metadata }: Pod): ObjectName => ({
  kind: 'Pod',
  namespace: metadata.namespace,
  name: metadata.name,
})
const getPod = ({ metadata }: Pod): string => `kubectl -n ${metadata.namespace} get pod ${metadata.name} -o wide`

const namedPods = (pods: readonly Pod[]): string => named(pods.map(nameOf).toSorted(), maxNames)

/** Budgets that select the pod. */
export const budgetsOf = (pod: Pod, budgets: readonly DisruptionBudget[]): readonly DisruptionBudget[] =>
  budgets.filter(
    ({ namespace, selector }) =>
      namespace === pod.metadata.namespace && isSelecting(selector) && selects(selector, pod.metadata.labels ?? {}),
  )

/** A budget without a selector selects nothing; an empty one selects all pods of its namespace. */
const isSelecting = (selector: LabelSelector | undefined): boolean => selector !== undefined

/** The expected answer of the Eviction API, from the current budgets; no request is sent. */
export function expectedEvictions(
  pods: readonly Pod[],
  budgets: readonly DisruptionBudget[],
  nowMs: number,
): ReadonlyMap<string, Eviction> {
  return new Map(
    pods.flatMap((pod) => {
      if (pod.metadata.deletionTimestamp !== undefined) return []
      const message = refusalOf(budgetsOf(pod, budgets))
      if (message === undefined) return []
      return [[pod.metadata.uid, { state: 'blocked', message, sinceMs: nowMs, retryAtMs: nowMs + 1 }] as const]
    }),
  )
}

function refusalOf(guards: readonly DisruptionBudget[]): string | undefined {
  if (guards.length > 1) return `more than one PodDisruptionBudget selects it: ${guards.map(budgetNameOf).join(', ')}`
  const exhausted = guards.find(({ disruptionsAllowed }) => disruptionsAllowed <= 0)
  return (
    exhausted && `PodDisruptionBudget ${budgetNameOf(exhausted)} allows ${exhausted.disruptionsAllowed} disruptions`
  )
}

const budgetNameOf = ({ namespace, name }: DisruptionBudget): string => `${namespace}/${name}`

/** No controller replaces it. */
export const isBare = ({ metadata }: Pod): boolean =>
  metadata.ownerReferences?.some(({ controller }) => controller === true) !== true
