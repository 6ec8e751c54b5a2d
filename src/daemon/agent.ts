import type { TakenPort } from '../host/preflight/facts.ts'
import { sweepStepFiles } from '../host/step/files.ts'
import { type Clock, sleep } from '../schemas/clock.ts'
import { openSteps } from '../schemas/journal.ts'
import { nodeWrightGroup } from '../schemas/nodewright.ts'
import { version } from '../schemas/version.ts'
import type { Failure, Snapshot } from '../stages/model/snapshot.ts'
import { undecidedPlan } from '../stages/skyhook/undecided.ts'
import { execute } from './executors/execute.ts'
import type { FailureBook } from './failures/book.ts'
import { runLoop } from './loop.ts'
import type { ListenEvents, Platform } from './platform/platform.ts'
import type { Settings } from './settings/settings.ts'
import { errorField, type Log } from './telemetry/log.ts'
import { type AgentComponents, wire } from './wire.ts'

/** The agent is not ready if a watch is silent for more than twice the time of its watchdog. */
const staleAfterMs = 400_000

/** Garbage of a completed Skyhook is removed after this delay: the slot and the next node come first. */
const collectAfterMs = 2_000

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

  const { failures } = components
  const startUp = createStartUp({ clock, log, failures, onLasting: () => undefined, signal })
  const claim = await unlessStopped(signal, () =>
    startUp.untilDone('claim the host', () =>
      platform.claimHost({
        description: `${settings.podName} ${version}`,
        onWaiting: (holder) => log.warn({ holder }, 'waiting for another agent on this host to exit'),
        signal,
      }),
    ),
  )
  if (claim) {
    if (await unlessStopped(signal, async () => (await sync(platform, components, signal), true))) {
      isSynced = true
      log.info({ sinceStartMs: Math.round(clock.monotonicMs()) }, 'synced')
      platform.saveMemory(signal)
      await run(platform, components, signal)
    }
  }
  log.info({}, 'agent stopping; running steps continue')
  closeServers()
  await components.close()
  if (claim) await components.crashLoop.end()
  await claim?.release()
  return 0
}

/**
 * No decision is made before everything is known: the objects of the cluster, the slots of this node and the steps that
 * run on its host.
 */
async function sync({ clock, log, root }: Platform, components: AgentComponents, signal: AbortSignal): Promise<void> {
  const { host, nodes, skyhooks, otherOperator, ownSlots, executors, failures, journal, straySteps, units } = components
  const onLasting = (failure: Failure): void => reportUndecided(components, log, clock.steadyMs(), failure)
  const { untilDone } = createStartUp({ clock, log, failures, onLasting, signal })
  await untilDone('read the journal', () => journal.load())
  await components.crashLoop.begin(journal.current())
  await untilDone('list the folders of Skyhooks', () => host.loadFolders())
  const isUnrecorded = (name: string): boolean =>
    !name.startsWith('.') && !Object.hasOwn(journal.current().skyhooks, name)
  await untilDone('look for files of another operator', () =>
    otherOperator.lookAtFolders([...host.folders()].filter(isUnrecorded)),
  )
  await Promise.all([
    nodes.synced,
    skyhooks.synced,
    untilDone(`ask for the API group ${nodeWrightGroup}`, () => otherOperator.askForGroup()),
  ])
  await untilKnown(components, signal)
  await untilDone('read what the operator rolled out', async () => {
    const snapshot = components.takeSnapshot(clock.steadyMs())
    if (snapshot) await components.rolledOutConfigs.read(snapshot)
  })
  await Promise.all([
    untilDone('look at the host', () => host.checkFitness()),
    untilDone('list the Leases', () => ownSlots.untilKnown()),
    untilDone('observe the running steps', () => executors.steps.observeOpen()),
    untilDone('list the running steps', () => straySteps.find()),
  ])
  await executors.statuses.refresh()
  if (!journal.isComplete()) return
  const kept = new Set([...openSteps(journal.current()).map(({ id }) => id), ...straySteps.ids()])
  await untilDone('remove the files of ended steps', () => sweepStepFiles({ root, units }, kept))
}

/** Resolves when the Node exists and every Skyhook was read; rejects after an abort. */
async function untilKnown({ nodes, skyhooks, wakeup }: AgentComponents, signal: AbortSignal): Promise<void> {
  signal.addEventListener('abort', wakeup.wake, { once: true })
  const isKnown = (): boolean => nodes.current() !== undefined && skyhooks.current().known
  for (let woken = wakeup.next(); !isKnown(); woken = wakeup.next()) {
    signal.throwIfAborted()
    await woken
  }
}

/** Before the first decision, the Node shows what delays it, as far as that is known. */
function reportUndecided(
  { takeSnapshot, executors, reporter }: AgentComponents,
  log: Log,
  nowMs: number,
  failure: Failure,
): void {
  const snapshot = takeSnapshot(nowMs)
  if (!snapshot) return
  const { actions, reasons } = undecidedPlan(snapshot, failure)
  reporter.report([], reasons)
  const report = (error: unknown): void => log.warn(errorField(error), 'reason could not be written')
  for (const action of actions)
    execute(executors, action).then((result) => {
      if (result.outcome === 'failed') report(result.error)
    }, report)
}

async function run({ clock, log }: Platform, components: AgentComponents, signal: AbortSignal): Promise<void> {
  const { wakeup, journal, pods, executors, reporter, census } = components
  const { slots, steps, preparer, statuses } = executors
  await steps
    .repair(journal.current()) // repairs the state of a previous agent, before anything is added to it
    .catch((error: unknown) =>
      log.warn(errorField(error), 'published flags, history and check results could not be repaired'),
    )
  const collect = async (): Promise<void> => {
    if (!journal.isComplete()) return
    await preparer.collect(journal.current)
    await steps.collect().catch((error: unknown) => log.warn(errorField(error), 'old copy dirs could not be removed'))
  }
  const loopEnded = runLoop({
    clock,
    wakeup,
    journal,
    takeSnapshot: components.takeSnapshot,
    execute: (action) => execute(executors, action),
    onDecided: ({ events, reasons, slotRequests, watchPods }) => {
      reporter.report(events, reasons)
      for (const event of events)
        if (event.type === 'stageFailed' && event.reason === 'RebootRefused') components.metrics.rebootRefused()
      slots.keepWaiting(slotRequests)
      // a stage may have written status files
      if (events.some(({ type }) => type === 'stageCompleted')) void statuses.refresh()
      pods.follow(watchPods)
      if (events.some(({ type }) => type === 'completed'))
        clock.startTimer(collectAfterMs, () => void collect(), { isBackground: true })
    },
    failures: components.failures,
    onDecisionFailed(error, snapshot, reasons) {
      components.metrics.decisionFailed()
      log.error(
        { ...errorField(error), stack: stackOf(error), ...(snapshot && keyFactsOf(snapshot)) },
        'decision failed',
      )
      reporter.report([], reasons)
    },
    onActionFailed: (action, error) =>
      log.warn({ action: action.do, key: action.key, ...errorField(error) }, 'action failed, retrying'),
    onActionRejected(action, error) {
      components.metrics.actionRejected()
      const { do: what, key } = action
      log.error({ action: what, key, ...errorField(error), stack: stackOf(error) }, 'action rejected, retrying')
    },
    retain: components.retain,
    signal,
  })
  const censusEnded = census.run()
  await collect()
  await Promise.all([loopEnded, censusEnded])
}

const stackOf = (error: unknown): string | undefined => (error instanceof Error ? error.stack : undefined)

/** The input of a decision, without configuration and secrets. */
const keyFactsOf = ({ bootId, skyhooks, journal, attempts, slots }: Snapshot): object => ({
  bootId,
  skyhooks: skyhooks.known
    ? skyhooks.value.map(({ metadata: { name, generation } }) => ({ name, generation }))
    : 'unknown',
  packages: Object.entries(journal.skyhooks).flatMap(([skyhook, { packages }]) =>
    Object.entries(packages).map(([key, { progress }]) => `${skyhook}/${key} ${progress.stage} ${progress.state}`),
  ),
  attempts: [...attempts].map(([id, { state }]) => `${id} ${state}`),
  slots: slots.known ? slots.value.map(({ lease }) => lease) : 'unknown',
})

/** Health for the kubelet, metrics for Prometheus. Returns a function that closes both. */
function serve(
  settings: Settings,
  platform: Platform,
  { connection, nodes, skyhooks, metrics, host }: AgentComponents,
  isSynced: () => boolean,
): () => void {
  const { log } = platform
  const eventsOf = (of: TakenPort['of'], onError: (error: Error) => void): ListenEvents => ({
    onError(error) {
      onError(error)
      host.portTaken(of, { port: settings[of].port, code: error.code ?? 'unknown' })
    },
    onRecovered() {
      log.info({ port: settings[of].port, of }, 'port was taken, listening again')
      host.portTaken(of, undefined)
    },
  })
  const closeHealth = platform.serveHealth(
    {
      live: () => undefined, // an answer proves it: the event loop shares this thread
      ready: () => {
        if (!isSynced()) return 'not synced with the API server'
        if (connection.state().state !== 'connected') return 'no connection to the system bus of the host'
        if (nodes.ageMs() > staleAfterMs || skyhooks.ageMs() > staleAfterMs)
          return 'the API server has been silent for too long'
        return undefined
      },
    },
    eventsOf('health', (error) =>
      log.error(errorField(error), 'health cannot be served, the kubelet will restart this agent'),
    ),
  )
  const closeMetrics = settings.metrics.enabled
    ? platform.serveMetrics(
        metrics.page,
        eventsOf('metrics', (error) => log.warn(errorField(error), 'metrics cannot be served')),
      )
    : undefined
  return () => {
    closeHealth()
    closeMetrics?.()
  }
}

/** Undefined if the agent was stopped meanwhile. */
async function unlessStopped<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T | undefined> {
  try {
    const result = await task()
    return signal.aborted ? undefined : result
  } catch (error) {
    if (signal.aborted) return undefined
    throw error
  }
}

/** Runs the tasks that an agent needs before its first decision. */
export type StartUp = {
  /** Tries again with the backoff of failures until it succeeds; rejects when the signal aborts. */
  readonly untilDone: <T>(operation: string, task: () => Promise<T>) => Promise<T>
}

/** A failure that the next attempts resolve does not become a reason. */
const lastingMs = 3_000

export function createStartUp(ports: {
  readonly clock: Clock
  readonly log: Log
  readonly failures: Pick<FailureBook, 'record' | 'clear' | 'current' | 'notBeforeMs'>
  /** The task has failed for some seconds and still fails. */
  readonly onLasting: (failure: Failure) => void
  readonly signal: AbortSignal
}): StartUp {
  const { clock, log, failures, signal } = ports
  return {
    async untilDone(operation, task) {
      const key = `start ${operation}`
      for (;;) {
        try {
          const result = await task()
          failures.clear(key)
          return result
        } catch (error) {
          signal.throwIfAborted()
          log.warn({ operation, ...errorField(error) }, 'start-up is held up, retrying')
          const { sinceMs } = failures.record(key, { operation }, error)
          const report = (): void => {
            const failure = failures.current().get(key)
            if (failure && !signal.aborted) ports.onLasting(failure)
          }
          clock.startTimer(Math.max(0, sinceMs + lastingMs - clock.steadyMs()), report, { isBackground: true })
          await sleep(clock, failures.notBeforeMs(key) - clock.steadyMs(), signal)
        }
      }
    },
  }
}
