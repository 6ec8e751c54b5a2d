/** Ordinary pods on the nodes to drain, in a separate namespace. */
import type { Cluster, NodeName } from './cluster.ts'
import { patch, ignoreNotFound } from './kube.ts'
import type { Moment, Pod, View } from './moments.ts'

/** In the base disk of the hosts: it runs until it is told to end. */
const workloadImage = 'sandbox.local/workload:1'

export type PodOptions = {
  readonly labels?: Readonly<Record<string, string>>
  readonly tolerations?: readonly object[]
  readonly arguments?: readonly string[]
  readonly graceSeconds?: number
  readonly nodeSelector?: Readonly<Record<string, string>>
}

export type Workloads = {
  readonly namespace: string
  /**
   * A Deployment whose pods carry the label `app=<name>`, spread over the nodes; returns when all of them are Ready.
   */
  deploy(name: string, replicas: number, options?: PodOptions): Promise<void>
  /** A pod without a controller, on this node, with the label `app=<name>`; returns when it is Ready. */
  pod(name: string, node: NodeName, options?: PodOptions): Promise<void>
  /** A PodDisruptionBudget over the pods labelled `app=<app>`; returns when its controller has counted them. */
  budget(name: string, app: string, minAvailable: number): Promise<void>
  allow(budget: string, minAvailable: number): Promise<void>
  dropBudget(name: string): Promise<void>
  endPod(name: string): Promise<void>
  /** Pods labelled `app=<app>`. */
  pods(view: View, app: string): Pod[]
  /** Deletes everything and waits until no pod is left. */
  remove(): Promise<void>
}

type Budget = {
  readonly metadata: { readonly generation: number }
  readonly status?: { readonly observedGeneration?: number }
}

/** Pods start slowly under load. */
const startsWithinMs = 60_000
const pollMs = 50

export const isReady = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined &&
  (status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false)

export async function createWorkloads(
  { api, history }: Pick<Cluster, 'api' | 'history'>,
  namespace: string,
): Promise<Workloads> {
  const core = `/api/v1/namespaces/${namespace}`
  const apps = `/apis/apps/v1/namespaces/${namespace}`
  const policy = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`
  await api.json('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } })
  // pods are refused until the controller has created their service account
  await until(
    `the default account of ${namespace}`,
    async () => (await ignoreNotFound(api, 'GET', `${core}/serviceaccounts/default`)) !== undefined,
  )

  const workloads: Workloads = {
    namespace,
    async deploy(name, replicas, options) {
      const labels = { app: name, ...options?.labels }
      const spread = {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: { app: name } },
      }
      const template = { metadata: { labels }, spec: { ...podSpec(options), topologySpreadConstraints: [spread] } }
      const spec = { replicas, selector: { matchLabels: { app: name } }, template }
      await api.json('POST', `${apps}/deployments`, { body: { metadata: { name }, spec } })
      const ready = (view: View): boolean => workloads.pods(view, name).filter(isReady).length === replicas
      await history.eventually(`${replicas} pods of ${name} are Ready`, ready, startsWithinMs)
    },
    async pod(name, node, options) {
      const metadata = { name, labels: { app: name, ...options?.labels } }
      await api.json('POST', `${core}/pods`, { body: { metadata, spec: { ...podSpec(options), nodeName: node } } })
      const ready = (view: View): boolean => workloads.pods(view, name).some(isReady)
      await history.eventually(`pod ${name} is Ready`, ready, startsWithinMs)
    },
    async budget(name, app, minAvailable) {
      const spec = { minAvailable, selector: { matchLabels: { app } } }
      await api.json('POST', policy, {
        body: { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name }, spec },
      })
      await counted(name)
    },
    async allow(budget, minAvailable) {
      await patch(api, `${policy}/${budget}`, { spec: { minAvailable } })
      await counted(budget)
    },
    dropBudget: async (name) => void (await ignoreNotFound(api, 'DELETE', `${policy}/${name}`)),
    endPod: async (name) => void (await ignoreNotFound(api, 'DELETE', `${core}/pods/${name}`)),
    pods: ({ pods }, app) =>
      [...pods.values()].filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.['app'] === app),
    async remove() {
      await ignoreNotFound(api, 'DELETE', `${apps}/deployments`) // otherwise their pods come back
      await ignoreNotFound(api, 'DELETE', `/api/v1/namespaces/${namespace}`)
      await history.eventually(
        `no pod is left in ${namespace}`,
        ({ pods }) => ![...pods.values()].some(({ metadata }) => metadata.namespace === namespace),
        startsWithinMs,
      )
    },
  }

  const counted = async (budget: string): Promise<void> =>
    await until(`budget ${budget} to be counted`, async () => {
      const { metadata, status } = await api.json<Budget>('GET', `${policy}/${budget}`)
      return status?.observedGeneration === metadata.generation
    })
  return workloads
}

/** For `never`: fewer Ready pods than a budget requires, once there were enough. */
export function tooFewReady(
  workloads: Workloads,
  app: string,
  minAvailable: number,
): (moment: Moment) => string | undefined {
  let wasReady = false
  return (moment) => {
    const ready = workloads.pods(moment, app).filter(isReady).length
    wasReady ||= ready >= minAvailable
    return wasReady && ready < minAvailable ? `${ready} pods of ${app} are Ready, not ${minAvailable}` : undefined
  }
}

function podSpec({ tolerations, arguments: args = [], graceSeconds = 1, nodeSelector }: PodOptions = {}): object {
  return {
    terminationGracePeriodSeconds: graceSeconds,
    automountServiceAccountToken: false,
    ...(tolerations && { tolerations }),
    ...(nodeSelector && { nodeSelector }),
    containers: [{ name: 'workload', image: workloadImage, imagePullPolicy: 'Never', args }],
  }
}

async function until(what: string, predicate: () => Promise<boolean>, withinMs = 20_000): Promise<void> {
  for (const endMs = Date.now() + withinMs; !(await predicate()); ) {
    if (Date.now() > endMs) throw new Error(`timed out after ${withinMs} ms waiting for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
