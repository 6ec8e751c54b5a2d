/**
 * A real API server with the chart installed, nodes whose agents the test plays, and the census as a process beside it.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { type CensusSupervisor, createCensusSupervisor } from '../../src/daemon/census/supervisor.ts'
import { censusFlags, startCensusProcess } from '../../src/daemon/platform/census-process.ts'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import type { CensusLine } from '../../src/census/model/messages.ts'
import type { SkyhookStatus } from '../../src/census/model/skyhook-status.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import type { KubeTransport } from '../../src/kube/transport.ts'
import * as keys from '../../src/schemas/annotations.ts'
import type { Skyhook, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { sha256Hex } from '../../src/schemas/canonical-json.ts'
import { appliedHash } from '../../src/stages/model/package-inputs.ts'
import { namespace, type ChartCluster } from './chart-cluster.ts'

export { namespace }
export const skyhooksPath = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'
export const leasesPath = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
const podsPath = `/api/v1/namespaces/${namespace}/pods`
const mergePatch = 'application/merge-patch+json'

export type AgentReport = {
  readonly status: string
  /** State of the packages, `stage/state` by name; default: none. */
  readonly entries?: Readonly<Record<string, string>>
  /** The spec that the node has applied. */
  readonly applied?: SkyhookSpec
  readonly reason?: readonly [reason: string, message: string]
}

export type RunningCensus = {
  readonly pid: () => number | undefined
  readonly lines: readonly CensusLine[]
  readonly deaths: readonly string[]
  /** Kills the census with SIGKILL; it restarts a moment later. */
  kill(): void
  stop(): Promise<void>
}

export type CensusCluster = {
  readonly cluster: ChartCluster
  readonly admin: KubeTransport
  readonly ca: string
  /** Creates a Node and its agent's pod, which is Ready. */
  createNode(name: string, labels?: Readonly<Record<string, string>>): Promise<void>
  deleteNode(name: string): Promise<void>
  label(node: string, labels: Readonly<Record<string, string | null>>): Promise<void>
  setAgent(node: string, state: 'ready' | 'not-ready'): Promise<void>
  /** Publishes a Skyhook's state on a Node in one patch, as its agent does. */
  publish(node: string, skyhook: string, report: AgentReport): Promise<void>
  annotate(node: string, annotations: Readonly<Record<string, string | null>>): Promise<void>
  apply(name: string, spec: SkyhookSpec): Promise<Skyhook>
  edit(name: string, change: object): Promise<Skyhook>
  get(name: string): Promise<Skyhook>
  status(name: string): Promise<SkyhookStatus>
  /**
   * Runs the census with the token of a node's agent, by default against the server itself. `nodeFlags` are further
   * flags of Node.js.
   */
  census(
    node: string,
    options?: { readonly server?: string; readonly nodeFlags?: readonly string[] },
  ): Promise<RunningCensus>
  stop(): Promise<void>
}

/** `stop` stops the cluster, too, in which the chart is installed. */
export async function startCensusCluster(cluster: ChartCluster): Promise<CensusCluster> {
  const { admin } = cluster.server
  const { ca = '' } = await cluster.server.credentials.current()
  const dir = await mkdtemp(join(tmpdir(), 'skyhookd-census-'))
  const bundle = join(dir, 'census.cjs')
  await build({
    entryPoints: [fileURLToPath(new URL('./census-child.ts', import.meta.url))],
    bundle: true,
    platform: 'node',
    format: 'cjs',
    outfile: bundle,
    logLevel: 'error',
  })
  const running = new Set<RunningCensus>()
  const revs = new Map<string, number>()
  const patchNode = async (name: string, metadata: object): Promise<void> =>
    void (await admin.json('PATCH', `/api/v1/nodes/${name}`, { body: { metadata }, contentType: mergePatch }))

  const setAgent: CensusCluster['setAgent'] = async (node, state) => {
    const condition = {
      type: 'Ready',
      status: state === 'ready' ? 'True' : 'False',
      lastTransitionTime: new Date().toISOString(),
    }
    const body = { status: { phase: 'Running', conditions: [condition] } }
    await admin.json('PATCH', `${podsPath}/agent-of-${node}/status`, { body, contentType: mergePatch })
  }

  return {
    cluster,
    admin,
    ca,
    async createNode(name, labels = {}) {
      await admin.json('POST', '/api/v1/nodes', {
        body: { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } },
      })
      const metadata = { name: `agent-of-${name}`, labels: { 'app.kubernetes.io/name': 'skyhookd' } }
      const spec = { nodeName: name, serviceAccountName: 'skyhookd', containers: [{ name: 'agent', image: 'none' }] }
      await admin.json('POST', podsPath, { body: { metadata, spec } })
      await setAgent(name, 'ready')
    },
    async deleteNode(name) {
      await admin.json('DELETE', `/api/v1/nodes/${name}`)
      await admin.json('DELETE', `${podsPath}/agent-of-${name}`, {
        body: { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 },
      })
    },
    label: async (node, labels) => await patchNode(node, { labels }),
    annotate: async (node, annotations) => await patchNode(node, { annotations }),
    setAgent,
    async publish(node, skyhook, report) {
      const { metadata } = await admin.json<KubeObject>('GET', `/api/v1/nodes/${node}`)
      const rev = (revs.get(`${node} ${skyhook}`) ?? 0) + 1
      revs.set(`${node} ${skyhook}`, rev)
      await patchNode(node, publicationOf(skyhook, report, { rev, nodeUID: metadata.uid }))
    },
    apply: async (name, spec) =>
      await admin.json<Skyhook>('POST', skyhooksPath, {
        body: { apiVersion: 'skyhook.nvidia.com/v1alpha1', kind: 'Skyhook', metadata: { name }, spec },
      }),
    edit: async (name, body) =>
      await admin.json<Skyhook>('PATCH', `${skyhooksPath}/${name}`, { body, contentType: mergePatch }),
    get: async (name) => await admin.json<Skyhook>('GET', `${skyhooksPath}/${name}`),
    status: async (name) =>
      ((await admin.json<Skyhook>('GET', `${skyhooksPath}/${name}`)).status ?? {}) as SkyhookStatus,
    async census(node, { server, nodeFlags = [] } = {}) {
      const token = await tokenOf(cluster, `agent-of-${node}`)
      const credentials = server === undefined ? { server: cluster.server.url, ca, token } : { server, token }
      const lines: CensusLine[] = []
      const deaths: string[] = []
      const term = new AbortController()
      const supervisor: CensusSupervisor = createCensusSupervisor({
        settings: () => ({
          v: 1,
          version: 'test',
          nodeName: node,
          podName: `agent-of-${node}`,
          namespace,
          agentPodSelector: 'app.kubernetes.io/name=skyhookd',
          defaultBudget: {},
        }),
        start: () =>
          startCensusProcess([
            'env',
            `CENSUS_CREDENTIALS=${JSON.stringify(credentials)}`,
            process.execPath,
            ...censusFlags,
            ...nodeFlags,
            bundle,
          ]),
        clock: systemClock,
        onLine: (line) => void lines.push(line),
        onExit: (exitReason) => void deaths.push(exitReason),
        uncountedMs: () => 0,
        onUnfit: () => {}, // these tests have no other census
      })
      const supervised = supervisor.supervise(term.signal)
      const one: RunningCensus = {
        pid: () => supervisor.pid(),
        lines,
        deaths,
        kill() {
          const pid = supervisor.pid()
          if (pid !== undefined) process.kill(pid, 'SIGKILL')
        },
        async stop() {
          term.abort(new Error('stopped by the test'))
          await supervised
          running.delete(one)
        },
      }
      running.add(one)
      return one
    },
    async stop() {
      for (const one of running) await one.stop()
      await cluster.stop()
      await rm(dir, { recursive: true })
    },
  }
}

/** What an agent writes on its Node about a Skyhook, as a merge patch of the metadata. */
export function publicationOf(
  skyhook: string,
  { status, entries = {}, applied, reason }: AgentReport,
  { rev, nodeUID }: { readonly rev: number; readonly nodeUID: string },
): {
  readonly annotations: Readonly<Record<string, string | null>>
  readonly labels: Readonly<Record<string, string>>
} {
  const state = JSON.stringify(
    Object.fromEntries(
      Object.entries(entries).map(([name, stageAndState]) => {
        const [stage = '', state = '', attempts] = stageAndState.split('/')
        const restarts = attempts === undefined ? {} : { restarts: Number(attempts) }
        return [`${name}|1.0.0`, { name, version: '1.0.0', image: 'registry.example.com/x', stage, state, ...restarts }]
      }),
    ),
  )
  const companion = { v: 1, rev, sha256: sha256Hex(state), nodeUID, ...(applied && { applied: appliedHash(applied) }) }
  const [reasonCode, message] = reason ?? []
  return {
    annotations: {
      [keys.nodeStateKey(skyhook)]: state,
      [keys.statusKey(skyhook)]: status,
      [keys.journalKey(skyhook)]: JSON.stringify(companion),
      [keys.reasonKey(skyhook)]:
        reasonCode === undefined
          ? null
          : JSON.stringify({ reason: reasonCode, message, since: new Date().toISOString() }),
    },
    labels: { [keys.statusKey(skyhook)]: status },
  }
}

async function tokenOf(cluster: ChartCluster, pod: string): Promise<string> {
  const spec = { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: pod } }
  const { status, message, body } = await cluster.admin(
    'POST',
    `/api/v1/namespaces/${namespace}/serviceaccounts/skyhookd/token`,
    { spec },
  )
  if (status !== 201) throw new Error(`no token for ${pod}: the API server answered ${status} ${message}`)
  return (body['status'] as { token: string }).token
}

/** Resident and private memory of a process, in MB. */
export async function memoryMb(pid: number): Promise<{ readonly rss: number; readonly private: number }> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')
  const kb = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0)
  return {
    rss: Math.round(kb('Rss') / 102.4) / 10,
    private: Math.round((kb('Private_Clean') + kb('Private_Dirty')) / 102.4) / 10,
  }
}

/** User and system time of a process, in seconds. */
export async function cpuSeconds(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
