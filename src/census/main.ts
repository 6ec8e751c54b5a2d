/** The census as a process: what it watches, and how it speaks to the agent that runs it. */
import { inClusterCredentials, type Credentials } from '../kube/credentials.ts'
import { startEventRecorder } from '../kube/events.ts'
import type { KubeObject } from '../kube/objects.ts'
import { startReflector, type ReflectorFact } from '../kube/reflector.ts'
import { abortableSleep } from '../kube/retry.ts'
import { createKubeTransport } from '../kube/transport.ts'
import { labelKeys } from '../lease/names.ts'
import { leasesPathOf } from '../lease/slot-reads.ts'
import type { Lease } from '../lease/slot.ts'
import { skyhooksPath, skyhookTypeMeta } from '../schemas/api.ts'
import { messageOf } from '../schemas/json.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { startCensus } from './scheduler.ts'
import { readCensusSettings, type CensusLine, type CensusSettings } from './messages.ts'
import type { CensusNode } from './node-facts.ts'
import { createAgentLiveness, type Agents, type AgentLiveness } from './agent-liveness.ts'
import {
  censusNode,
  isHealthy,
  agentPodsIn,
  previouslySilentNodes,
  slimNode,
  slimPod,
  slimSkyhook,
  type PodObject,
} from './projections.ts'

export type CensusInput = {
  /** One line of settings, then nothing: its end is the order to stop, and comes also when the agent is killed. */
  readonly stdin: NodeJS.ReadableStream
  readonly stdout: NodeJS.WritableStream
  /** Default: the pod's ServiceAccount. */
  readonly credentials?: Credentials
}

/** Without the pods nodes that say nothing are unknown; they get this long to be there for the first count. */
const podsTimeoutMs = 2_000
const heartbeatMs = 10_000
/**
 * One census tells of all Skyhooks: more than an agent tells of its node, and still nothing that an API server would
 * feel.
 */
const eventRateLimit = { perSecond: 1, burst: 50 }

/** Counts until stdin ends. Returns the exit code; throws when there are no usable settings or no credentials. */
export async function runCensus(input: CensusInput): Promise<number> {
  const stopping = new AbortController()
  const { signal } = stopping
  const settings = readCensusSettings(
    await firstLine(input.stdin, () => stopping.abort(new Error('the agent is gone'))),
  )
  const emit = (line: CensusLine): void => void input.stdout.write(`${JSON.stringify(line)}\n`)
  input.stdout.on('error', () => stopping.abort(new Error('the agent is gone')))
  await count(settings, { emit, credentials: input.credentials ?? inClusterCredentials(), signal })
  return 0
}

type CensusContext = {
  readonly emit: (line: CensusLine) => void
  readonly credentials: Credentials
  readonly signal: AbortSignal
}

async function count(settings: CensusSettings, { emit, credentials, signal }: CensusContext): Promise<void> {
  const { namespace, nodeName, podName, version } = settings
  const log = (level: 'debug' | 'info' | 'warn', message: string, fields: Record<string, unknown> = {}): void =>
    emit({ kind: 'log', level, message, fields })
  const requests = new Map<string, { verb: string; code: number; count: number }>()
  const transport = createKubeTransport({
    credentials,
    version,
    onRequest({ verb, code }) {
      const one = requests.get(`${verb} ${code}`) ?? { verb, code, count: 0 }
      one.count++
      requests.set(`${verb} ${code}`, one)
    },
  })
  const recorder = startEventRecorder(transport, {
    component: 'skyhookd-census',
    host: nodeName,
    signal,
    timing: eventRateLimit,
  })
  const onFact =
    (kind: string) =>
    (fact: ReflectorFact): void => {
      if (fact.fact === 'failed')
        log('warn', 'census: watch interrupted', {
          kind,
          during: fact.during,
          retryInMs: fact.retryInMs,
          error: messageOf(fact.error),
        })
    }

  const nodes = new Map<string, CensusNode>()
  let wasTrusted = false
  const isTrusted = (): boolean =>
    isHealthy(nodeObjects) && isHealthy(skyhooks) && isHealthy(ledgers) && nodes.has(nodeName)
  const warnOwnNodeMissing = (): void =>
    log('warn', 'census: the own Node is not among those listed, nothing is counted', {
      node: nodeName,
      nodes: nodes.size,
    })
  const recheckTrust = (): void => {
    const trusted = isTrusted()
    if (trusted && !wasTrusted) census.enqueueAll()
    if (!trusted && isHealthy(nodeObjects) && !nodes.has(nodeName) && wasTrusted) warnOwnNodeMissing()
    wasTrusted = trusted
  }

  const nodeObjects = startReflector<KubeObject>(transport, {
    path: '/api/v1/nodes',
    metadataOnly: true,
    transform: slimNode,
    onChange({ changes }) {
      let hasNodeSetChanged = false
      for (const { type, key, object } of changes) {
        const before = nodes.get(key)
        const after = type === 'deleted' ? undefined : censusNode(object)
        if (after === undefined) nodes.delete(key)
        else nodes.set(key, after)
        hasNodeSetChanged ||= (before === undefined) !== (after === undefined)
        if (wasTrusted) census.nodeChanged(before, after)
      }
      if (hasNodeSetChanged) refreshAgents()
      recheckTrust()
    },
    onFact: onFact('nodes'),
    signal,
  })
  const skyhooks = startReflector<Skyhook & KubeObject>(transport, {
    path: skyhooksPath,
    transform: slimSkyhook,
    onChange({ changes }) {
      if (changes.length > 0) census.skyhooksChanged(changes)
      recheckTrust()
    },
    onFact: onFact('skyhooks'),
    signal,
  })
  const ledgers = startReflector<Lease>(transport, {
    path: leasesPathOf({ transport, namespace }),
    query: { labelSelector: `${labelKeys.slotKind}=ledger` },
    onChange({ changes }) {
      if (changes.length > 0) census.ledgersChanged(changes)
      recheckTrust()
    },
    onFact: onFact('ledgers'),
    signal,
  })
  const pods = startReflector<PodObject>(transport, {
    path: `/api/v1/namespaces/${namespace}/pods`,
    query: { labelSelector: settings.agentPodSelector },
    transform: slimPod,
    onChange: () => refreshAgents(),
    onFact: onFact('pods'),
    signal,
  })

  let agents: Agents = { ready: undefined, of: () => 'unknown', isDead: () => false }
  let liveness: AgentLiveness | undefined
  let livenessTimer: NodeJS.Timeout | undefined
  /** Asks anew who answers; when that changed for any node, all Skyhooks are counted. */
  const refreshAgents = (): void => {
    if (liveness === undefined) return
    const before = new Map([...nodes.keys()].map((name) => [name, agents.of(name)]))
    const wasReady = agents.ready
    agents = liveness.observe(nodes.keys(), agentPodsIn(pods, podName), performance.now())
    clearTimeout(livenessTimer)
    const delayMs = liveness.nextChangeAtMs() - performance.now()
    if (delayMs < Infinity) livenessTimer = setTimeout(refreshAgents, Math.max(0, delayMs) + 1).unref()
    if (agents.ready !== wasReady || [...before].some(([name, state]) => agents.of(name) !== state)) census.enqueueAll()
  }

  const census = startCensus({
    leases: { transport, namespace },
    nodes,
    skyhooks: skyhooks.store,
    ledgers: ledgers.store,
    agents: () => agents,
    isTrusted: () => liveness !== undefined && isTrusted(),
    report: ({ metadata }, skyhookEvent) =>
      recorder.record({ regarding: { ...skyhookTypeMeta, name: metadata.name, uid: metadata.uid }, ...skyhookEvent }),
    onFailed: (skyhook, error) => log('warn', 'census: could not be written', { skyhook, error: messageOf(error) }),
    signal,
  })

  const heartbeat = (): void => {
    if (requests.size > 0) emit({ kind: 'requests', counts: [...requests.values()] })
    requests.clear()
    emit({
      kind: 'heartbeat',
      nodes: nodes.size,
      agents: agents.ready,
      skyhooks: skyhooks.store.size,
      rssBytes: process.memoryUsage.rss(),
    })
  }
  const heartbeatTimer = setInterval(heartbeat, heartbeatMs)
  try {
    await Promise.all([nodeObjects.synced, skyhooks.synced, ledgers.synced])
    await Promise.race([pods.synced, abortableSleep(podsTimeoutMs, signal)])
    liveness = createAgentLiveness(previouslySilentNodes(skyhooks.store.values(), nodes))
    refreshAgents()
    if (nodes.has(nodeName)) log('info', 'census: counting', { nodes: nodes.size, skyhooks: skyhooks.store.size })
    else warnOwnNodeMissing()
    census.enqueueAll()
    recheckTrust()
    heartbeat()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    clearInterval(heartbeatTimer)
    clearTimeout(livenessTimer)
    heartbeat() // the last requests count too
    transport.close()
  }
}

/** The first line; `onEnd` when the stream ends, then or later. */
async function firstLine(stdin: NodeJS.ReadableStream, onEnd: () => void): Promise<string> {
  return await new Promise((resolve, reject) => {
    let text = ''
    stdin.setEncoding('utf8')
    stdin.on('data', (chunk: string) => {
      text += chunk
      const end = text.indexOf('\n')
      if (end < 0) return
      resolve(text.slice(0, end))
      text = ''
    })
    for (const event of ['end', 'close', 'error']) {
      stdin.on(event, () => {
        onEnd()
        reject(new Error('no settings came'))
      })
    }
  })
}
