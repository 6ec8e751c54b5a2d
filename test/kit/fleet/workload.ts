/**
 * The pods of a simulated fleet: a scheduler, kubelets and a controller of theirs in one. A pod that is evicted ends
 * after its grace period, and another one takes its place on a Node that takes pods. Protected pods, and those
 * that tolerate everything or belong to Jobs, end by themselves.
 */
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import { hasRequiredTaint } from '../../../src/stages/drain/node-spec.ts'
import type { Clock } from '../../../src/schemas/clock.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'
import type { SimObject } from '../api-server/versions.ts'
import type { Chance } from './chance.ts'
import { isReadyPod } from '../api-server/eviction.ts'
import { createClusterWriter } from './cluster-writer.ts'
import { requiredTaint } from './fleet-host.ts'
import type { PodPlan } from './plan.ts'

export const podsFolder = '/api/v1/namespaces/apps/pods'
export const protectedLabels = { critical: 'true' }
const guardedLabels = { app: 'guarded' }
const cordonToleration = { key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }

const readyMs = 2_000
const rescheduleMs = 3_000
const protectedLifeMs = [20_000, 90_000] as const

export type Workload = {
  /** Places a pod on the Node, or on another one that takes pods. */
  place(pod: PodPlan, nodeName: string): void
  /** No pod that ends by itself is placed from here on. */
  finish(): void
}

export function startWorkload(
  server: SimulatedApiServer,
  { clock, chance, hasGuard }: { readonly clock: Clock; readonly chance: Chance; readonly hasGuard: boolean },
): Workload {
  const writer = createClusterWriter(server, { clock, client: 'workload' })
  const plans = new Map<string, PodPlan>()
  const ending = new Set<string>()
  let serial = 0
  let isFinished = false

  const later = (ms: number, act: () => void): void => void clock.startTimer(ms, act, { isBackground: true })

  function place(plan: PodPlan, preferred: string): void {
    const nodes = server.objects('nodes') as readonly (SimObject & KubernetesNode)[]
    const open = nodes.filter((node) => takes(node, plan)).map(nameOf)
    const nodeName = open.includes(preferred) ? preferred : open[chance.integer(0, open.length - 1)]
    if (nodeName === undefined) return later(rescheduleMs, () => place(plan, preferred))
    const name = `${plan.name}-${++serial}`
    plans.set(name, plan)
    const labels = { ...(plan.isProtected && protectedLabels), ...(plan.isGuarded && guardedLabels) }
    const tolerations = [
      ...(plan.toleratesCordon === true ? [cordonToleration] : []),
      ...(plan.toleratesAll === true ? [{ operator: 'Exists' }] : []),
    ]
    const spec = {
      nodeName,
      terminationGracePeriodSeconds: Math.ceil(plan.graceMs / 1_000),
      ...(tolerations.length > 0 && { tolerations }),
      ...(plan.isOfJob === true && { restartPolicy: 'Never' }),
      containers: [{ name: 'main', image: 'none' }],
    }
    const lifeMs = endsByItself(plan) ? chance.integer(...protectedLifeMs) : undefined
    const owners = ownersOf(plan)
    // not before: what is reported about a pod that is still to be created is lost
    writer.send('POST', podsFolder, { metadata: { name, labels, ...owners }, spec }, () => {
      run(name)
      if (lifeMs !== undefined) later(lifeMs, () => remove(name))
    })
  }

  /** As its kubelet does. */
  const run = (name: string): void =>
    later(readyMs, () =>
      writer.patch(`${podsFolder}/${name}/status`, {
        status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
      }),
    )

  const remove = (name: string): void => writer.send('DELETE', `${podsFolder}/${name}`, { gracePeriodSeconds: 0 })

  function look(pod: SimObject): void {
    const { name, uid, deletionTimestamp } = pod.metadata
    if (deletionTimestamp === undefined || ending.has(uid)) return
    ending.add(uid)
    later(plans.get(name)?.graceMs ?? 0, () => remove(name))
  }

  const podsOf = (): readonly SimObject[] =>
    server.objects('pods').filter(({ metadata }) => metadata.namespace === 'apps')

  server.observe({
    committed({ type, resource, version: { object } }) {
      if (resource.plural === 'nodes' && type === 'DELETED') {
        const gone = object.metadata.name
        // as the collector of pods does with those that are bound to no Node
        later(rescheduleMs, () => {
          if (server.object('nodes', undefined, gone) !== undefined) return
          for (const pod of podsOf()) if (nodeOf(pod) === gone) remove(pod.metadata.name)
        })
      }
      if (resource.plural !== 'pods' || object.metadata.namespace !== 'apps') return
      if (type !== 'DELETED') return look(object)
      ending.delete(object.metadata.uid) // a restored etcd may bring it back
      const plan = plans.get(object.metadata.name)
      if (plan !== undefined && !(endsByItself(plan) && isFinished))
        later(rescheduleMs, () => !(endsByItself(plan) && isFinished) && place(plan, nodeOf(object)))
    },
    restored() {
      for (const pod of podsOf()) {
        look(pod)
        if (!isReadyPod(pod)) run(pod.metadata.name)
        // nobody runs it any more if it had been deleted
        const plan = plans.get(pod.metadata.name)
        if (plan !== undefined && endsByItself(plan)) later(protectedLifeMs[0], () => remove(pod.metadata.name))
      }
    },
  })

  if (hasGuard)
    writer.send('POST', '/apis/policy/v1/namespaces/apps/poddisruptionbudgets', {
      metadata: { name: 'guard' },
      spec: { selector: { matchLabels: guardedLabels }, maxUnavailable: 1 },
    })

  return {
    place,
    finish: () => void (isFinished = true),
  }
}

/** Only a pod that tolerates every taint, and the DaemonSet, come to a Node with the runtime-required taint. */
const takes = (node: KubernetesNode, { toleratesCordon = false, toleratesAll = false }: PodPlan): boolean =>
  isReady(node) &&
  (toleratesAll || ((node.spec?.unschedulable !== true || toleratesCordon) && !hasRequiredTaint(node, requiredTaint)))

const endsByItself = ({ isProtected, toleratesAll = false, isOfJob = false }: PodPlan): boolean =>
  isProtected || toleratesAll || isOfJob

/** Plain pods have none: their owner is this workload. */
function ownersOf({ name, toleratesAll = false, isOfJob = false }: PodPlan): object {
  if (!toleratesAll && !isOfJob) return {}
  const kind = isOfJob ? 'Job' : 'ReplicaSet'
  const apiVersion = isOfJob ? 'batch/v1' : 'apps/v1'
  return { ownerReferences: [{ apiVersion, kind, name, uid: `uid-of-${name}`, controller: true }] }
}

const nameOf = ({ metadata }: SimObject): string => metadata.name
const nodeOf = (pod: SimObject): string => (pod['spec'] as { readonly nodeName?: string }).nodeName ?? ''
const isReady = ({ status }: KubernetesNode): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true
