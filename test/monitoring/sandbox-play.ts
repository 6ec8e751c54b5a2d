/** The play on the real hosts of a sandbox: the requests of an administrator, and scrapes through the API server. */
import { nodeStateKey } from '../../src/schemas/annotations.ts'
import { policiesPath, skyhooksPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import type { KubeTransport } from '../../src/kube/transport.ts'
import type { NodeName } from '../kit/cluster/cluster.ts'
import { hostOf } from '../kit/cluster/host.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import { shellscript } from '../kit/cluster/skyhooks.ts'
import { createWorkloads } from '../kit/cluster/workloads.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { History } from '../kit/history.ts'
import type { Target } from './recording.ts'
import { type Actors, isErroring, withInterrupt } from './troubles.ts'

export type SandboxArena = {
  readonly box: Sandbox
  readonly api: KubeTransport
  readonly history: History
}

const namespace = 'guarded'
const withoutAgentLabel = 'example.com/without-agent'
const metricsPort = 9475
/** Less than between two scrapes, and enough for an agent with a small share of a busy machine. */
const answersWithinMs = 5_000
/** Scripts of the mode in its name fail while it exists. */
const failureFileOf = (mode: string): string => `/var/tmp/fails-in-${mode}`
const failingScript = (mode: string): string => `test ! -e ${failureFileOf(mode)}`

/** Has the agents stay away from labelled nodes, so that they can be stopped without touching their hosts. */
export async function sandboxActors({ box, api, history }: SandboxArena): Promise<Actors> {
  const registry = box.env()['REGISTRY'] ?? ''
  const workloads = await createWorkloads({ api, history }, namespace)
  const labelNode = async (node: string, labels: Readonly<Record<string, string | null>>): Promise<void> =>
    void (await patch(api, `${paths.nodes}/${node}`, { metadata: { labels } }))
  const guards = new Set<string>()
  await keepAgentsOff(box)
  return {
    packageOf: (version, interrupt) =>
      shellscript(
        registry,
        { apply: failingScript('apply'), post_interrupt_check: failingScript('post-interrupt-check') },
        // the image has two versions, and the play names them otherwise
        { version: version === '1.0.0' ? '1.1.0' : '1.1.1', ...(interrupt && { interrupt }) },
      ),
    createPolicy: async (name, spec) =>
      void (await api.json('POST', policiesPath, {
        body: { ...skyhookTypeMeta, kind: 'DeploymentPolicy', metadata: { name }, spec },
      })),
    createSkyhook: async (name, spec) =>
      void (await api.json('POST', skyhooksPath, { body: { ...skyhookTypeMeta, metadata: { name }, spec } })),
    patchSkyhook: async (name, change) => void (await patch(api, `${skyhooksPath}/${name}`, change)),
    deleteSkyhook: async (name) => void (await api.json('DELETE', `${skyhooksPath}/${name}`)),
    labelNode,
    async requestInterrupt(node, skyhook) {
      const key = nodeStateKey(skyhook)
      const stateText = (): string => history.now.nodes.get(node)?.metadata.annotations?.[key] ?? ''
      await history.eventually(`the package of ${skyhook} fails on ${node}`, () => isErroring(stateText()))
      const text = stateText()
      await patch(api, `${paths.nodes}/${node}`, { metadata: { annotations: { [key]: withInterrupt(text) } } })
    },
    async setFailing(node, mode) {
      const host = hostOf(box, node)
      for (const one of ['apply', 'post-interrupt-check'])
        if (one === mode) await host.write(failureFileOf(one), '')
        else await host.exec('rm', '-f', failureFileOf(one))
    },
    async guardPods(nodes) {
      for (const node of nodes) {
        const name = `pod-of-${node}`
        await workloads.pod(name, node as NodeName)
        await workloads.budget(name, name, 1)
        guards.add(name)
      }
    },
    async dropGuard() {
      for (const name of guards) await workloads.dropBudget(name)
      guards.clear()
    },
    async stopAgents(nodes) {
      for (const node of nodes) await labelNode(node, { [withoutAgentLabel]: 'true' })
    },
    async startAgents(nodes) {
      for (const node of nodes) await labelNode(node, { [withoutAgentLabel]: null })
    },
  }
}

async function keepAgentsOff(box: Sandbox): Promise<void> {
  const expression = { key: withoutAgentLabel, operator: 'DoesNotExist' }
  const affinity = {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [expression] }] },
    },
  }
  const change = JSON.stringify({ spec: { template: { spec: { affinity } } } })
  await box.kubectl(['-n', 'skyhook', 'patch', 'daemonset/skyhookd', '--type=merge', '-p', change])
  await box.kubectl(['-n', 'skyhook', 'rollout', 'status', 'daemonset/skyhookd', '--timeout=300s'])
}

/** As Prometheus would get it; undefined where no agent answers in time. */
export async function scrapeNode(api: KubeTransport, node: string): Promise<readonly [Target, string | undefined]> {
  const target = { node, instance: `${node}:${metricsPort}` }
  const path = `/api/v1/nodes/${node}:${metricsPort}/proxy/metrics`
  try {
    const body = await api.stream(path, { accept: 'text/plain', signal: AbortSignal.timeout(answersWithinMs) })
    const chunks: Uint8Array[] = []
    for await (const chunk of body) chunks.push(chunk)
    return [target, Buffer.concat(chunks).toString('utf8')]
  } catch {
    return [target, undefined]
  }
}
