import { sweepStepFiles } from '../host/step/files.ts'
import { sleep } from '../schemas/clock.ts'
import { openSteps } from '../schemas/journal.ts'
import { execute } from './executors/execute.ts'
import { runLoop } from './loop.ts'
import type { Platform } from './platform/platform.ts'
import type { Settings } from './settings/settings.ts'
import { version } from './settings/version.ts'
import { errorField } from './telemetry/log.ts'
import { wire, type AgentComponents } from './wire.ts'

/** The agent is not ready when a watch is silent for more than twice the time of its watchdog. */
const staleAfterMs = 400_000

/** What a completed Skyhook no longer needs is removed this much later: the slot and the next node come first. */
const collectAfterMs = 2_000

const syncRetryMs = 1_000

/** Runs the agent of one node until it is stopped. Returns the exit code. */
export async function runAgent(settings: Settings, platform: Platform): Promise<number> {
  const { clock, log } = platform
  const shutdown = new AbortController()
  const { signal } = shutdown
  platform.onTermination((signalName) => shutdown.abort(new Error(`stopped by ${signalName}`)))
  log.info({ version, pid: platform.processId }, 'agent starting')

  const components = await wire({ settings, platform, signal })
  let isSynced = false
  const closeServers = serve(settings, platform, components, () => isSynced)

  const claim = await unlessStopped(signal, () =>
    platform.claimHost({
      description: `${settings.podName} ${version}`,
      onWaiting: (holder) => log.warn({ holder }, 'waiting for another agent on this host to exit'),
      signal,
    }),
  )
  if (claim) {
    await components.journal.load()
    await components.host.loadFolders()
    if (await unlessStopped(signal, async () => (await sync(platform, components, signal), true))) {
      isSynced = true
      log.info({ sinceStartMs: Math.round(clock.monotonicMs()) }, 'synced')
      platform.saveMemory(signal)
      await run(platform, components, signal)
    }
  }
  log.info({}, 'agent stopping; running steps continue')
  closeServers()
  components.close()
  await claim?.release()
  return 0
}

/**
 * Nothing is decided before everything is known: the objects of the cluster, the slots of this node and the steps that
 * run on its host.
 */
async function sync(
  { clock, log, root }: Platform,
  { nodes, skyhooks, executors, journal, units, host }: AgentComponents,
  signal: AbortSignal,
): Promise<void> {
  const retryUntilDone = async (task: () => Promise<void>, failureMessage: string): Promise<void> => {
    for (;;) {
      try {
        return await task()
      } catch (error) {
        signal.throwIfAborted()
        log.warn(errorField(error), failureMessage)
        await sleep(clock, syncRetryMs, signal)
      }
    }
  }
  await Promise.all([nodes.synced, skyhooks.synced])
  while (nodes.current() === undefined || !skyhooks.current().known) await sleep(clock, 5, signal)
  await Promise.all([
    host.checkFitness(),
    retryUntilDone(() => executors.slots.load(signal), 'Leases could not be listed'),
    retryUntilDone(() => executors.steps.observeOpen(), 'running steps could not be observed'),
  ])
  await executors.statuses.refresh()
  const open = new Set(openSteps(journal.current()).map(({ id }) => id))
  await sweepStepFiles({ root, units }, open)
}

async function run({ clock, log }: Platform, components: AgentComponents, signal: AbortSignal): Promise<void> {
  const { wakeup, journal, pods, slotWatch, executors, reporter, census } = components
  const { steps, preparer, statuses } = executors
  await steps
    .repair(journal.current()) // as a previous agent may have left it; before anything adds to it
    .catch((error: unknown) =>
      log.warn(errorField(error), 'published flags, history and check results could not be repaired'),
    )
  const collect = async (): Promise<void> => {
    await preparer.collect(journal.current)
    await steps.collect().catch((error: unknown) => log.warn(errorField(error), 'old copy dirs could not be removed'))
  }
  const loopEnded = runLoop({
    clock,
    wakeup,
    journal,
    takeSnapshot: components.takeSnapshot,
    execute: (action) => execute(executors, action),
    onDecided: ({ events, reasons, watchPods }) => {
      reporter.report(events, reasons)
      slotWatch.update()
      // a stage may have written status files
      if (events.some(({ type }) => type === 'stageCompleted')) void statuses.refresh()
      pods.follow(watchPods)
      if (events.some(({ type }) => type === 'completed'))
        clock.startTimer(collectAfterMs, () => void collect(), { isBackground: true })
    },
    onActionFailed: (action, error) =>
      log.warn({ action: action.do, key: action.key, ...errorField(error) }, 'action failed, retrying'),
    retain: components.retain,
    signal,
  })
  const censusEnded = census.run()
  await collect()
  await Promise.all([loopEnded, censusEnded])
}

/** Health for the kubelet, metrics for Prometheus. Returns what closes both. */
function serve(
  settings: Settings,
  platform: Platform,
  { connection, nodes, skyhooks, metrics }: AgentComponents,
  isSynced: () => boolean,
): () => void {
  const { log } = platform
  const closeHealth = platform.serveHealth(
    {
      live: () => undefined, // an answer proves it: the loop shares this thread
      ready: () => {
        if (!isSynced()) return 'not synced with the API server'
        if (connection.state().state !== 'connected') return 'no connection to the system bus of the host'
        if (nodes.ageMs() > staleAfterMs || skyhooks.ageMs() > staleAfterMs)
          return 'the API server has been silent for too long'
        return undefined
      },
    },
    (error) => log.error(errorField(error), 'health cannot be served, the kubelet will restart this agent'),
  )
  const closeMetrics = settings.metrics.enabled
    ? platform.serveMetrics(metrics.registry, (error) => log.warn(errorField(error), 'metrics cannot be served'))
    : undefined
  return () => {
    closeHealth()
    closeMetrics?.()
  }
}

/** Undefined when the agent was stopped meanwhile. */
async function unlessStopped<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T | undefined> {
  try {
    const result = await task()
    return signal.aborted ? undefined : result
  } catch (error) {
    if (signal.aborted) return undefined
    throw error
  }
}
