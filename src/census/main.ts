/** The census as a process: what it watches, and how it speaks to the agent that runs it. */
import { inClusterCredentials, type Credentials } from '../kube/credentials.ts'
import { startEventRecorder } from '../kube/events.ts'
import type { KubeObject } from '../kube/objects.ts'
import { startReflector, type ReflectorFact } from '../kube/reflector.ts'
import { pause } from '../kube/retry.ts'
import { createTransport } from '../kube/transport.ts'
import { LABEL } from '../lease/names.ts'
import { collectionOf } from '../lease/slot-reads.ts'
import type { Lease } from '../lease/slot.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { startCensus } from './scheduler.ts'
import { readCensusSettings, type CensusLine, type CensusSettings } from './messages.ts'
import type { CensusNode } from './node-facts.ts'
import { createSilence, type Agents, type Silence } from './agent-liveness.ts'
import { SKYHOOKS } from './skyhook-writer.ts'
import { censusNode, isSound, podsIn, silentBefore, slimNode, slimPod, slimSkyhook, type PodObject } from './projections.ts'

export type CensusInput = {
  /** One line of settings, then nothing: its end is the order to stop, and comes also when the agent is killed. */
  readonly stdin: NodeJS.ReadableStream
  readonly stdout: NodeJS.WritableStream
  /** Default: the pod's ServiceAccount. */
  readonly credentials?: Credentials
}

/** Without the pods nodes that say nothing are unknown; they get this long to be there for the first count. */
const PODS_WITHIN_MS = 2_000
const PULSE_MS = 10_000
/** One census tells of all Skyhooks: more than an agent tells of its node, and still nothing that an API server would feel. */
const EVENT_PACE = { perSecond: 1, burst: 50 }

/** Counts until stdin ends. Returns the exit code; throws when there are no usable settings or no credentials. */
export async function runCensus(input: CensusInput): Promise<number> {
  const stopping = new AbortController()
  const { signal } = stopping
  const settings = readCensusSettings(await firstLine(input.stdin, () => stopping.abort(new Error('the agent is gone'))))
  const say = (line: CensusLine): void => void input.stdout.write(`${JSON.stringify(line)}\n`)
  input.stdout.on('error', () => stopping.abort(new Error('the agent is gone')))
  await count(settings, { say, credentials: input.credentials ?? inClusterCredentials(), signal })
  return 0
}

type Surroundings = { readonly say: (line: CensusLine) => void; readonly credentials: Credentials; readonly signal: AbortSignal }

async function count(settings: CensusSettings, { say, credentials, signal }: Surroundings): Promise<void> {
  const { namespace, nodeName, podName, version } = settings
  const log = (level: 'debug' | 'info' | 'warn', message: string, fields: Record<string, unknown> = {}): void =>
    say({ kind: 'log', level, message, fields })
  const requests = new Map<string, { verb: string; code: number; count: number }>()
  const transport = createTransport({
    credentials,
    version,
    onRequest({ verb, code }) {
      const one = requests.get(`${verb} ${code}`) ?? { verb, code, count: 0 }
      one.count++
      requests.set(`${verb} ${code}`, one)
    },
  })
  const recorder = startEventRecorder(transport, { component: 'skyhookd-census', host: nodeName, signal, timing: EVENT_PACE })
  const onFact =
    (kind: string) =>
    (fact: ReflectorFact): void => {
      if (fact.fact === 'failed')
        log('warn', 'census: watch interrupted', { kind, during: fact.during, retryInMs: fact.retryInMs, error: textOf(fact.error) })
    }

  const nodes = new Map<string, CensusNode>()
  let wasTrusted = false
  const isTrusted = (): boolean => isSound(nodeObjects) && isSound(skyhooks) && isSound(ledgers) && nodes.has(nodeName)
  const tellBlind = (): void =>
    log('warn', 'census: the own Node is not among those listed, nothing is counted', { node: nodeName, nodes: nodes.size })
  const lookAgain = (): void => {
    const trusted = isTrusted()
    if (trusted && !wasTrusted) census.countAll()
    if (!trusted && isSound(nodeObjects) && !nodes.has(nodeName) && wasTrusted) tellBlind()
    wasTrusted = trusted
  }

  const nodeObjects = startReflector<KubeObject>(transport, {
    path: '/api/v1/nodes',
    metadataOnly: true,
    keep: slimNode,
    onChange({ changes }) {
      let isOther = false
      for (const { type, key, object } of changes) {
        const before = nodes.get(key)
        const after = type === 'deleted' ? undefined : censusNode(object)
        if (after === undefined) nodes.delete(key)
        else nodes.set(key, after)
        isOther ||= (before === undefined) !== (after === undefined)
        if (wasTrusted) census.nodeChanged(before, after)
      }
      if (isOther) lookAtAgents()
      lookAgain()
    },
    onFact: onFact('nodes'),
    signal,
  })
  const skyhooks = startReflector<Skyhook & KubeObject>(transport, {
    path: SKYHOOKS,
    keep: slimSkyhook,
    onChange({ changes }) {
      if (changes.length > 0) census.skyhooksChanged(changes)
      lookAgain()
    },
    onFact: onFact('skyhooks'),
    signal,
  })
  const ledgers = startReflector<Lease>(transport, {
    path: collectionOf({ transport, namespace }),
    query: { labelSelector: `${LABEL.slotKind}=ledger` },
    onChange({ changes }) {
      if (changes.length > 0) census.ledgersChanged(changes)
      lookAgain()
    },
    onFact: onFact('ledgers'),
    signal,
  })
  const pods = startReflector<PodObject>(transport, {
    path: `/api/v1/namespaces/${namespace}/pods`,
    query: { labelSelector: settings.agentPods },
    keep: slimPod,
    onChange: () => lookAtAgents(),
    onFact: onFact('pods'),
    signal,
  })

  let agents: Agents = { ready: undefined, of: () => 'unknown', isDead: () => false }
  let silence: Silence | undefined
  let silenceTimer: NodeJS.Timeout | undefined
  /** Asks anew who answers; when that changed for any node, all Skyhooks are counted. */
  const lookAtAgents = (): void => {
    if (silence === undefined) return
    const before = new Map([...nodes.keys()].map((name) => [name, agents.of(name)]))
    const wasReady = agents.ready
    agents = silence.look(nodes.keys(), podsIn(pods, podName), performance.now())
    clearTimeout(silenceTimer)
    const inMs = silence.nextMs() - performance.now()
    if (inMs < Infinity) silenceTimer = setTimeout(lookAtAgents, Math.max(0, inMs) + 1).unref()
    if (agents.ready !== wasReady || [...before].some(([name, state]) => agents.of(name) !== state)) census.countAll()
  }

  const census = startCensus({
    leases: { transport, namespace },
    nodes,
    skyhooks: skyhooks.store,
    ledgers: ledgers.store,
    agents: () => agents,
    isTrusted: () => silence !== undefined && isTrusted(),
    tell: ({ metadata }, told) => recorder.record({ regarding: { ...skyhookKind, name: metadata.name, uid: metadata.uid }, ...told }),
    onFailed: (skyhook, error) => log('warn', 'census: could not be written', { skyhook, error: textOf(error) }),
    signal,
  })

  const pulse = (): void => {
    if (requests.size > 0) say({ kind: 'requests', counts: [...requests.values()] })
    requests.clear()
    say({ kind: 'pulse', nodes: nodes.size, agents: agents.ready, skyhooks: skyhooks.store.size, rssBytes: process.memoryUsage.rss() })
  }
  const pulses = setInterval(pulse, PULSE_MS)
  try {
    await Promise.all([nodeObjects.synced, skyhooks.synced, ledgers.synced])
    await Promise.race([pods.synced, pause(PODS_WITHIN_MS, signal)])
    silence = createSilence(silentBefore(skyhooks.store.values(), nodes))
    lookAtAgents()
    if (nodes.has(nodeName)) log('info', 'census: counting', { nodes: nodes.size, skyhooks: skyhooks.store.size })
    else tellBlind()
    census.countAll()
    lookAgain()
    pulse()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    clearInterval(pulses)
    clearTimeout(silenceTimer)
    pulse() // the last requests count too
    transport.close()
  }
}

const skyhookKind = { apiVersion: 'skyhook.nvidia.com/v1alpha1', kind: 'Skyhook' } as const

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

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
