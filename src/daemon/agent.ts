import { keepBus } from '../host/bus-connection.ts'
import { readBootId } from '../host/identity.ts'
import { openJournalFile } from '../host/journal.ts'
import { createHostRoot } from '../host/root.ts'
import { claimSingleAgent } from '../host/single-agent.ts'
import { sweepStepFiles } from '../host/step-files.ts'
import { createUnits } from '../host/units.ts'
import { inClusterCredentials } from '../kube/credentials.ts'
import { startEventRecorder } from '../kube/events.ts'
import type { ReflectorFact } from '../kube/reflector.ts'
import { pause } from '../kube/retry.ts'
import { createTransport } from '../kube/transport.ts'
import { emptyJournal } from '../schemas/journal.ts'
import type { Journal } from '../schemas/journal.ts'
import type { Action, TimedReason } from '../stages/plan.ts'
import type { ReasonName } from '../stages/reasons.ts'
import { evictPod } from './actions/evictions.ts'
import { createInterrupter } from './actions/interrupts.ts'
import { createPreparer } from './actions/prepare.ts'
import { publish } from './actions/publish.ts'
import { createStepRunner } from './actions/steps.ts'
import { serveHealth, serveMetrics } from './http.ts'
import { createLog, errorField } from './log.ts'
import { startLoop } from './loop.ts'
import { createMetrics } from './metrics.ts'
import { followNode } from './node-source.ts'
import { createPodSource } from './pod-source.ts'
import { createReferences } from './references.ts'
import { readSettings } from './settings.ts'
import { followSkyhooks } from './skyhook-source.ts'
import { keepSlots } from './slot-keeper.ts'
import { followSlotNews } from './slot-news.ts'
import { newState } from './state.ts'
import { createTeller } from './telling.ts'
import { version } from './version.ts'

/** Up to this many nodes one edit may be read by all agents at once. */
const readAtOnceUpTo = 100
const longestReadDelayMs = 5_000
/** A watch that is silent for longer than its watchdog allows twice over is not worth calling ready. */
const staleAfterMs = 400_000

/** The agent of one node, until it is told to stop. Returns the exit code. */
export async function runAgent(): Promise<number> {
  const settings = readSettings()
  const log = createLog(settings.logLevel, { node: settings.nodeName })
  const stopping = new AbortController()
  const { signal } = stopping
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stopping.abort(new Error(`stopped by ${name}`)))
  log.info({ version, pid: process.pid }, 'agent starts')

  const root = createHostRoot(settings.hostRoot)
  const claim = await claimSingleAgent({
    root,
    description: `${settings.podName} ${version}`,
    onWaiting: (holder) => log.warn({ holder }, 'another agent of this host is still running, waiting for its end'),
    signal,
  }).catch((error: unknown) => {
    if (signal.aborted) return undefined
    throw error
  })
  if (!claim) return 0

  const journalFile = openJournalFile<Journal>(root, { version: 1 })
  const found = await journalFile.read()
  if (found.state === 'unreadable') log.error({ detail: found.why }, 'the journal cannot be read; the state of this host is taken from the Node')
  const bootId = await readBootId(root)
  const state = newState(found.state === 'read' ? found.document : emptyJournal(''), bootId)

  const metrics = createMetrics({
    version,
    slots: () => slots.kinds(),
    reasons: () => oldestReasons(reasons),
    reflectorAges: () => new Map([['nodes', nodes.ageMs() / 1000], ['skyhooks', skyhooks.ageMs() / 1000]]),
  })
  const transport = createTransport({ credentials: inClusterCredentials(), version, onRequest: ({ verb, code }) => metrics.apiRequest(verb, code) })
  const recorder = startEventRecorder(transport, { component: 'skyhookd', host: settings.nodeName, signal })
  const connection = keepBus({ socketPath: settings.busSocket })
  const units = createUnits(connection)
  connection.onState((bus) => {
    state.host = bus.state === 'connected' ? { state: 'usable' } : { state: 'unusable', reason: 'HostUnreachable', message: `the host's system bus does not answer: ${bus.why}` }
    wake()
  })

  let reasons: ReadonlyMap<string, TimedReason> = new Map()
  let wake = (): void => undefined // sources may speak before the loop runs
  const onFact = (kind: string) => (fact: ReflectorFact): void => {
    if (fact.fact === 'failed') log.warn({ kind, during: fact.during, retryInMs: fact.retryInMs, ...errorField(fact.error) }, 'watch interrupted')
    else log.debug({ kind, ...fact }, 'watch')
  }
  const nodes = followNode(transport, settings.nodeName, {
    onNode: (node) => {
      state.node = node
      wake()
    },
    onFact: onFact('nodes'),
    signal,
  })
  const skyhooks = followSkyhooks(transport, {
    readDelayMs: () => (settings.estimatedNodeCount <= readAtOnceUpTo ? 0 : Math.random() * Math.min(longestReadDelayMs, settings.estimatedNodeCount)),
    onSkyhooks: (known) => {
      state.skyhooks = known
      wake()
    },
    onFact: onFact('skyhooks'),
    onReadFailed: (skyhook, error) => log.warn({ skyhook, ...errorField(error) }, 'a Skyhook could not be read'),
    signal,
  })

  const leases = { transport, namespace: settings.namespace }
  const slots = keepSlots({
    transport,
    leases,
    state,
    node: () => ({ name: settings.nodeName, uid: state.node?.metadata.uid ?? '', bootId: state.bootId }),
    log,
    signal,
    onHeldFor: (phase, seconds) => metrics.slotHeld(phase, seconds),
    onWaitedFor: (seconds) => metrics.slotWaited(seconds),
  })
  const news = followSlotNews({ transport, namespace: settings.namespace, state, wake: () => wake(), signal })
  const references = createReferences(transport, settings.namespace)
  const preparer = createPreparer({ root, settings, state, references, log, signal })
  const steps = createStepRunner({ root, units, connection, state, settings, references, contentOf: preparer.contentOf, metrics, wake: () => wake() })

  const pods = createPodSource(transport, settings.nodeName, state, () => wake(), signal)
  const interrupter = createInterrupter({ root, units, connection, state, settings, pods, slots, log, signal })

  const execute = async (action: Action): Promise<void> => {
    switch (action.do) {
      case 'prepare':
        return await preparer.prepare(action.image)
      case 'acquireSlot':
        return await slots.acquire(action.view, action.phase)
      case 'adoptSlot':
        return await slots.adopt(action.view, action.phase)
      case 'confirmSlot':
        return await slots.confirm(action.slot, action.view)
      case 'renewSlot':
        return await slots.renew(action.slot, action.phase)
      case 'releaseSlot':
        return await slots.release(action.slot)
      case 'startStep':
        return await steps.start(action)
      case 'stopStep':
        return await steps.stop(action.step)
      case 'recordStep':
        return await steps.recordStep(action)
      case 'recordChecks':
        return await steps.recordChecks(action)
      case 'recordHistory':
        return await steps.recordHistory(action)
      case 'evict':
        return await evictPod(transport, state, action.pod, log, signal)
      case 'interrupt':
        return await interrupter.interrupt(action)
      case 'recordInterrupt':
        return await interrupter.record(action)
      case 'publish':
        return await publish(transport, nodes, state, action.patch, signal)
    }
  }

  let ready = false
  const health = serveHealth({
    live: () => undefined, // answering is living: the loop shares this thread
    ready: () => {
      if (!ready) return 'not synced with the API server yet'
      if (connection.state().state !== 'connected') return 'no connection to the system bus of the host'
      if (nodes.ageMs() > staleAfterMs || skyhooks.ageMs() > staleAfterMs) return 'the API server has been silent for too long'
      return undefined
    },
  })
  const scrape = settings.metrics.enabled
    ? serveMetrics(metrics.registry, settings.hostIp, settings.metrics.port, (error) => log.warn(errorField(error), 'metrics cannot be served'))
    : undefined

  const synced = await ready_(async () => {
    await Promise.all([nodes.synced, skyhooks.synced])
    await until(() => state.node !== undefined && state.skyhooks.known, signal)
    await retry(() => slots.load(signal), (error) => log.warn(errorField(error), 'the Leases could not be listed'), signal)
    await retry(() => steps.observeOpen(), (error) => log.warn(errorField(error), 'the running steps could not be looked at'), signal)
    await sweepStepFiles({ root, units }, openAttempts(state.journal))
    await preparer.collect(state.journal)
  }, signal)

  if (synced) {
    const loop = startLoop({
      state,
      settings: { runtimeRequiredTaint: settings.runtimeRequiredTaint, skipNamespaces: settings.drain.skipNamespaces },
      writeJournal: (journal) => journalFile.write(journal),
      execute,
      decided: ({ events, reasons: nowReasons, watchPods }) => {
        reasons = nowReasons
        teller.events(events, nowReasons)
        news.update()
        pods.follow(watchPods)
      },
      onActionFailed: (action, error) => log.warn({ action: action.do, key: action.key, ...errorField(error) }, 'an action failed and is tried again'),
      onJournalFailed: (error) => {
        state.host = { state: 'unusable', reason: 'HostUnusable', message: `the journal cannot be written: ${errorField(error).error}` }
        log.error(errorField(error), 'the journal cannot be written; nothing is done until it can')
      },
      signal,
    })
    const teller = createTeller(log, recorder, { apiVersion: 'v1', kind: 'Node', name: settings.nodeName, uid: state.node?.metadata.uid ?? '' })
    wake = loop.wake
    ready = true
    log.info({ sinceStartMs: Math.round(performance.now()) }, 'synced')
    await loop.ended
  }
  log.info({}, 'agent stops; running steps run on')
  steps.close()
  connection.close()
  transport.close()
  health.close()
  scrape?.close()
  await claim.release()
  return 0
}

function oldestReasons(reasons: ReadonlyMap<string, TimedReason>): ReadonlyMap<ReasonName, number> {
  const ages = new Map<ReasonName, number>()
  for (const { reason, sinceMs } of reasons.values()) ages.set(reason, Math.max(ages.get(reason) ?? 0, (Date.now() - sinceMs) / 1000))
  return ages
}

const openAttempts = (journal: Journal): ReadonlySet<string> =>
  new Set(
    Object.values(journal.skyhooks).flatMap(({ packages }) =>
      Object.values(packages).flatMap(({ attempt }) => (attempt?.steps ?? []).filter(({ result }) => !result).map(({ id }) => id)),
    ),
  )

/** False when stopped before the start was through. */
async function ready_(begin: () => Promise<void>, signal: AbortSignal): Promise<boolean> {
  try {
    await begin()
    return !signal.aborted
  } catch (error) {
    if (signal.aborted) return false
    throw error
  }
}

async function until(holds: () => boolean, signal: AbortSignal): Promise<void> {
  while (!holds()) await pause(5, signal)
}

async function retry(task: () => Promise<void>, onFailure: (error: unknown) => void, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      return await task()
    } catch (error) {
      signal.throwIfAborted()
      onFailure(error)
      await pause(1_000, signal)
    }
  }
}
