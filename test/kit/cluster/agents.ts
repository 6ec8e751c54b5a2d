/** The agents' pods: which runs where, and ways to disturb them. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Cluster, NodeName } from './cluster.ts'
import { patch } from './kube.ts'
import type { Pod, View } from './moments.ts'
import { isReady } from './workloads.ts'

const namespace = 'skyhook'
const daemonSet = `/apis/apps/v1/namespaces/${namespace}/daemonsets/skyhookd`
const isAgent = ({ metadata }: Pod): boolean =>
  metadata.namespace === namespace &&
  metadata.labels?.['app.kubernetes.io/name'] === 'skyhookd' &&
  metadata.deletionTimestamp === undefined
/** Its startup probe has passed. It is Ready up to ten seconds later, at the kubelet's next probe. */
const isStarted = ({ status }: Pod): boolean =>
  (status as { containerStatuses?: { started?: boolean }[] } | undefined)?.containerStatuses?.[0]?.started === true

/** The agent's pod on a node; undefined if there is none, or only a terminating one. */
export function agentOn(view: View, node: string): Pod | undefined {
  return [...view.pods.values()].find((pod) => isAgent(pod) && pod.spec?.nodeName === node)
}

/** One that the kubelet's last probe found Ready. */
export function hasReadyAgent(view: View, node: string): boolean {
  const agent = agentOn(view, node)
  return agent !== undefined && isReady(agent)
}

/** The UIDs of the started agents' pods by node. */
export function startedAgents(view: View): Map<string, string> {
  const agents = [...view.pods.values()].filter((pod) => isAgent(pod) && isStarted(pod))
  return new Map(agents.map(({ metadata, spec }) => [spec?.nodeName ?? '', metadata.uid]))
}

/** Deletes the agent's pod and waits until its replacement has started. */
export async function deleteAgent({ api, history }: Cluster, node: NodeName): Promise<void> {
  const old = agentOn(history.now, node)
  if (!old) throw new Error(`no agent on ${node}`)
  await api.json('DELETE', `/api/v1/namespaces/${namespace}/pods/${old.metadata.name}`)
  await history.eventually(`another agent works on ${node}`, (view) => {
    const uid = startedAgents(view).get(node)
    return uid !== undefined && uid !== old.metadata.uid
  })
}

/** Kills the agent's process as the kernel does when memory runs out, and waits until the kubelet has restarted it. */
export async function killAgent(cluster: Cluster, node: NodeName): Promise<void> {
  const { history } = cluster
  const restarts = (view: View): number => {
    const { containerStatuses } = (agentOn(view, node)?.status ?? {}) as {
      containerStatuses?: { restartCount: number }[]
    }
    return containerStatuses?.[0]?.restartCount ?? 0
  }
  const before = restarts(history.now)
  await cluster.host(node).exec('pkill', '-KILL', '-f', 'skyhookd.cjs agent')
  await history.eventually(
    `the agent on ${node} was started again`,
    (view) => restarts(view) > before && startedAgents(view).has(node),
  )
}

/**
 * Runs `task` while the agent's process on the node is stopped: it neither acts nor puts anything back. After half a
 * minute its pod is no longer Ready.
 */
export async function withFrozenAgent<T>({ sandbox }: Cluster, node: NodeName, task: () => Promise<T>): Promise<T> {
  const signal = async (name: 'STOP' | 'CONT'): Promise<void> =>
    void (await sandbox.must(['exec', node, '--', 'pkill', `-${name}`, '-f', 'skyhookd.cjs agent']))
  await signal('STOP')
  try {
    return await task()
  } finally {
    await signal('CONT')
  }
}

/** Rolls all agents to another image of the same content with `helm upgrade`, and waits until they have started. */
export async function rollAgents(cluster: Cluster): Promise<void> {
  await replaced(cluster, async () => await cluster.sandbox.must(['install']))
}

/** Takes the last `helm upgrade` back with `helm rollback`, and waits until the agents have started. */
export async function rollBackAgents(cluster: Cluster): Promise<void> {
  const env = { ...process.env, ...cluster.sandbox.env() }
  const rollback = ['rollback', 'skyhookd', '--namespace', namespace]
  await replaced(cluster, async () => await promisify(execFile)('helm', rollback, { env }))
}

async function replaced({ history }: Cluster, replace: () => Promise<unknown>): Promise<void> {
  const old = startedAgents(history.now)
  await replace()
  await history.eventually('every agent was replaced', (view) => {
    const agents = startedAgents(view)
    return [...old].every(([node, uid]) => agents.has(node) && agents.get(node) !== uid)
  })
}

/** Runs `task` while no agent runs anywhere, then waits until all agents are back. */
export async function withoutAgents({ api, history }: Cluster, task: () => Promise<void>): Promise<void> {
  const nodes = [...startedAgents(history.now).keys()]
  const allow = async (selector: string | null): Promise<unknown> =>
    await patch(api, daemonSet, { spec: { template: { spec: { nodeSelector: { 'example.com/nowhere': selector } } } } })
  await allow('true')
  try {
    await history.eventually(
      'no agent runs',
      (view) => ![...view.pods.values()].some(({ metadata }) => metadata.namespace === namespace),
    )
    await task()
  } finally {
    await allow(null)
    await history.eventually('the agents are back', (view) => nodes.every((node) => startedAgents(view).has(node)))
  }
}
