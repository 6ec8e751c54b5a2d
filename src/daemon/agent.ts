import { readBootId } from '../host/identity.ts'
import { openJournalFile, type JournalFile } from '../host/fs/journal-file.ts'
import type { HostRoot } from '../host/fs/host-root.ts'
import { sweepStepFiles } from '../host/step/files.ts'
import { abortableSleep } from '../kube/retry.ts'
import { emptyJournal, openSteps, type Journal } from '../schemas/journal.ts'
import { execute } from './executors/execute.ts'
import { errorField, type Log } from './telemetry/log.ts'
import { startLoop } from './loop.ts'
import { wire, type AgentComponents } from './wire.ts'
import type { Platform } from './platform/platform.ts'
import type { Settings } from './settings/settings.ts'
import { newState, type State } from './state/state.ts'
import { version } from './settings/version.ts'

/** A watch that is silent for longer than its watchdog allows twice over is not worth calling ready. */
const staleAfterMs = 400_000

/** What a completed Skyhook needs no more goes this long after it: the slot and the next node come first. */
const collectAfterMs = 2_000

/** The agent of one node, until it is told to stop. Returns the exit code. */
export async function runAgent(settings: Settings, platform: Platform): Promise<number> {
  const { clock, log, root } = platform
  const shutdown = new AbortController()
  const { signal } = shutdown
  platform.onTermination((signalName) => shutdown.abort(new Error(`stopped by ${signalName}`)))
  log.info({ version, pid: platform.processId }, 'agent starts')

  const state = newState(emptyJournal(''), await readBootId(root))
  const components = wire({ settings, platform, state, signal }) // reads and watches; nothing is written before the host is ours
  let isSynced = false
  const closeServers = serve(settings, platform, components, () => isSynced)

  const claim = await unlessStopped(signal, () =>
    platform.claimHost({
      description: `${settings.podName} ${version}`,
      onWaiting: (holder) => log.warn({ holder }, 'another agent of this host is still running, waiting for its end'),
      signal,
    }),
  )
  if (claim) {
    const journalFile = openJournalFile<Journal>(root, { version: 1, clock })
    state.journal = await readJournal(journalFile, log)
    state.hostFolders = new Set((await root.stat(settings.copyDirRoot)) ? await root.readdir(settings.copyDirRoot) : [])
    if (await unlessStopped(signal, async () => (await sync({ root, state, components, log, signal }), true))) {
      isSynced = true
      log.info({ sinceStartMs: Math.round(clock.monotonicMs()) }, 'synced')
      platform.saveMemory(signal)
      await run({ settings, platform, state, components, journalFile, log, signal })
    }
  }
  log.info({}, 'agent stops; running steps run on')
  closeServers()
  components.close()
  await claim?.release()
  return 0
}

async function readJournal(file: JournalFile<Journal>, log: Log): Promise<Journal> {
  const found = await file.read()
  if (found.state === 'read') return found.document
  if (found.state === 'unreadable')
    log.error({ detail: found.why }, 'the journal cannot be read; the state of this host is taken from the Node')
  return emptyJournal('')
}

type RunContext = {
  readonly state: State
  readonly components: AgentComponents
  readonly log: Log
  readonly signal: AbortSignal
}

/**
 * Nothing is decided before everything is known: the cluster's objects, the slots of this node, the steps that run on
 * its host.
 */
async function sync({ root, state, components, log, signal }: RunContext & { readonly root: HostRoot }): Promise<void> {
  await Promise.all([components.nodes.synced, components.skyhooks.synced])
  while (state.node === undefined || !state.skyhooks.known) await abortableSleep(5, signal)
  await Promise.all([
    retryUntilDone(
      () => components.executors.slots.load(signal),
      (error) => log.warn(errorField(error), 'the Leases could not be listed'),
      signal,
    ),
    retryUntilDone(
      () => components.executors.steps.observeOpen(),
      (error) => log.warn(errorField(error), 'the running steps could not be looked at'),
      signal,
    ),
  ])
  await components.executors.statuses.refresh()
  const open = new Set(openSteps(state.journal).map(({ id }) => id))
  await sweepStepFiles({ root, units: components.units }, open)
}

async function run({
  settings,
  platform,
  state,
  components,
  journalFile,
  log,
  signal,
}: RunContext & {
  readonly settings: Settings
  readonly platform: Platform
  readonly journalFile: JournalFile<Journal>
}): Promise<void> {
  const reporter = components.createEventReporter()
  const initialJournal = state.journal // as another agent may have left it; mended before anything adds to it
  await components.executors.steps
    .repair(initialJournal)
    .catch((error: unknown) => log.warn(errorField(error), 'flags, history and check results could not be repaired'))
  const collect = async (): Promise<void> => {
    await components.executors.preparer.collect(state.journal)
    await components.executors.steps
      .collect()
      .catch((error: unknown) => log.warn(errorField(error), 'old copy dirs could not be removed'))
  }
  const loop = startLoop({
    state,
    settings: {
      runtimeRequiredTaint: settings.runtimeRequiredTaint,
      skipNamespaces: settings.drain.skipNamespaces,
      reapplyOnReboot: settings.reapplyOnReboot,
    },
    writeJournal: (journal) => journalFile.write(journal),
    execute: (action) => execute(components.executors, action),
    onDecided: ({ events, reasons, watchPods }) => {
      components.setReasons(reasons)
      reporter.events(events, reasons)
      components.slotWatch.update()
      if (events.some(({ type }) => type === 'stageCompleted')) void components.executors.statuses.refresh() // what it left for the Node to show
      components.pods.follow(watchPods)
      if (events.some(({ type }) => type === 'completed'))
        platform.clock.startTimer(collectAfterMs, () => void collect(), { isBackground: true })
    },
    onActionFailed: (action, error) =>
      log.warn({ action: action.do, key: action.key, ...errorField(error) }, 'an action failed and is tried again'),
    onJournalFailed: (error) =>
      log.error(errorField(error), 'the journal cannot be written; nothing is done until it can'),
    signal,
  })
  components.onWake(() => loop.wake())
  const censusEnded = components.campaignForCensus()
  await collect()
  await Promise.all([loop.ended, censusEnded])
}

/** Health for the kubelet, metrics for Prometheus. Returns what closes both. */
function serve(
  settings: Settings,
  platform: Platform,
  { connection, nodes, skyhooks, metrics }: AgentComponents,
  isSynced: () => boolean,
): () => void {
  const closeHealth = platform.serveHealth({
    live: () => undefined, // answering is living: the loop shares this thread
    ready: () => {
      if (!isSynced()) return 'not synced with the API server yet'
      if (connection.state().state !== 'connected') return 'no connection to the system bus of the host'
      if (nodes.ageMs() > staleAfterMs || skyhooks.ageMs() > staleAfterMs)
        return 'the API server has been silent for too long'
      return undefined
    },
  })
  const closeMetrics = settings.metrics.enabled
    ? platform.serveMetrics(metrics.registry, (error) =>
        platform.log.warn(errorField(error), 'metrics cannot be served'),
      )
    : undefined
  return () => {
    closeHealth()
    closeMetrics?.()
  }
}

/** Undefined when the agent was told to stop meanwhile. */
async function unlessStopped<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T | undefined> {
  try {
    const result = await task()
    return signal.aborted ? undefined : result
  } catch (error) {
    if (signal.aborted) return undefined
    throw error
  }
}

async function retryUntilDone(
  task: () => Promise<void>,
  onFailure: (error: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      return await task()
    } catch (error) {
      signal.throwIfAborted()
      onFailure(error)
      await abortableSleep(1_000, signal)
    }
  }
}
