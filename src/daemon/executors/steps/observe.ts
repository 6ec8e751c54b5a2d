import type { BusConnection } from '../../../host/dbus/reconnecting.ts'
import { readBootId } from '../../../host/identity.ts'
import { readStepNote, type StepHost } from '../../../host/step/files.ts'
import { observeStepUnit } from '../../../host/step/observe.ts'
import { failureTail } from '../../../packages/step/log-tail.ts'
import type { LogFiles } from '../../../packages/step/log-files.ts'
import { openSteps, type StepAttempt } from '../../../schemas/journal.ts'
import type { State } from '../../state/state.ts'

/** Signals can be lost with a bus, so running steps are also polled this often. */
const observeIntervalMs = 10_000
/** A host that has not gone down within this was not going to. */
const maxShutdownMs = 300_000

/**
 * Where an attempt writes, and what must not be quoted from there; kept on the host for whichever agent sees its end.
 */
export type StepLogNote = { readonly files: LogFiles; readonly secrets: readonly string[] }

/** Keeps the state's knowledge of the step attempts that the journal has open. */
export type StepObserver = {
  observe(step: StepAttempt): Promise<void>
  /** Looks at every open attempt; before the first decision, and whenever signals may have been missed. */
  observeOpen(): Promise<void>
  close(): void
}

export function createStepObserver(
  host: StepHost,
  connection: BusConnection,
  state: State,
  wake: () => void,
): StepObserver {
  const shutdownSinceMs = new Map<string, number>()

  async function observe(step: StepAttempt): Promise<void> {
    const observed = await observeStepUnit(host, { id: step.id, unit: step.unit, bootId: step.bootId })
    const previous = state.attempts.get(step.id)
    if (previous?.state === 'ended') return
    if (observed.state === 'absent' && previous?.state === 'absent') return // with the startBlocker, until it is started
    if (observed.state !== 'ended') state.attempts.set(step.id, { state: observed.state })
    else if (observed.isHostStopping && step.bootId === state.bootId && isGoingDown(step))
      state.attempts.set(step.id, { state: 'running' })
    else {
      const failed = observed.result.outcome !== 'exited' || observed.result.code !== 0
      const logTail = failed ? await tailOfAttempt(step) : undefined
      const end = observed.isHostStopping
        ? ({ outcome: 'unknown', detail: 'the host was going down when it ended' } as const)
        : observed.result
      state.attempts.set(step.id, { state: 'ended', end, ...(logTail && { logTail }) })
    }
    wake()
  }

  /** The end of its log, without secrets: also of an attempt that an agent before this one started. */
  async function tailOfAttempt({ id }: StepAttempt): Promise<string | undefined> {
    const text = await readStepNote(host, id)
    if (text === undefined) return undefined
    const { files, secrets } = JSON.parse(text) as StepLogNote
    return await failureTail(host.root, files, secrets)
  }

  /**
   * Whatever the shutdown of the host ended is judged in the next boot; a shutdown that was called off counts after a
   * while.
   */
  function isGoingDown(step: StepAttempt): boolean {
    const sinceMs = shutdownSinceMs.get(step.id) ?? Date.now()
    shutdownSinceMs.set(step.id, sinceMs)
    return Date.now() - sinceMs < maxShutdownMs
  }

  async function observeOpen(): Promise<void> {
    state.bootId = await readBootId(host.root)
    await Promise.all(openSteps(state.journal).map(observe))
  }

  const ignoreError = (): void => undefined // the bus is away: the look after reconnecting finds what ended
  const unsubscribeJobs = host.units.onJobEnd(({ unit }) => {
    const step = openSteps(state.journal).find((open) => open.unit === unit)
    if (step) observe(step).catch(ignoreError)
  })
  const unsubscribeState = connection.onState((bus) => {
    if (bus.state === 'connected') observeOpen().catch(ignoreError)
  })
  const timer = setInterval(() => void observeOpen().catch(ignoreError), observeIntervalMs)
  timer.unref()

  return {
    observe,
    observeOpen,
    close() {
      unsubscribeJobs()
      unsubscribeState()
      clearInterval(timer)
    },
  }
}
