import type { HostRoot } from '../../host/fs/host-root.ts'
import { readBootId, readUptimeMs } from '../../host/identity.ts'
import type { Clock } from '../../schemas/clock.ts'
import { errorField, type Log } from '../telemetry/log.ts'

/** Steady time of one agent, which continues that of earlier agents of the same boot. */
export type SteadyTime = {
  /** The machine's clock with that steady time. It never jumps, also not when `keep` fails. */
  readonly clock: Clock
  /**
   * Leaves it for the next agent, once this one is the host's only one and before it reads the journal. False: the
   * journal's times are those of another steady clock. Never rejects: without it waits only take longer.
   */
  keep(): Promise<boolean>
}

/**
 * The kernel cuts the host's uptime off to hundredths of a second. Each agent counts that much less than the one before
 * would, so that it is never ahead of it: a wait that both count may end a little late, never early.
 */
const uptimeResolutionMs = 10

/** Goes with the boot: `<boot id> <steady time at uptime 0 in ms>`. */
const runFolder = '/run/skyhook'
const steadyTimeFile = `${runFolder}/steady-time`

/** Reads what an earlier agent of this boot left; without it steady time starts from the wall clock of now. */
export async function openSteadyTime({
  clock: machine,
  root,
  log,
}: {
  readonly clock: Clock
  readonly root: HostRoot
  readonly log: Log
}): Promise<SteadyTime> {
  let failure: unknown
  const found = await readBase(root).catch((error: unknown) => void (failure = error))
  const atMs = machine.steadyMs()
  const isFirst = found?.bootBaseMs === undefined
  const bootBaseMs = isFirst ? atMs - (found?.uptimeMs ?? 0) : found.bootBaseMs - uptimeResolutionMs
  const offsetMs = isFirst ? 0 : bootBaseMs + found.uptimeMs - atMs

  return {
    clock: {
      wallMs: () => machine.wallMs(),
      steadyMs: () => machine.steadyMs() + offsetMs,
      monotonicMs: () => machine.monotonicMs(),
      startTimer: (delayMs, callback, options) => machine.startTimer(delayMs, callback, options),
    },
    async keep() {
      try {
        if (failure !== undefined) throw failure
        if (found === undefined) return false
        // another agent may have run since then, by its own steady time
        const isSame = !isFirst && (await root.readText(steadyTimeFile)) === found.text
        await root.makeFolder(runFolder, 0o700)
        await root.writeFile(steadyTimeFile, `${found.bootId} ${bootBaseMs}\n`, 0o600)
        return isSame
      } catch (error) {
        log.warn(errorField(error), 'steady time cannot be kept for the next agent, waits start over')
        return false
      }
    },
  }
}

type Base = {
  readonly bootId: string
  readonly uptimeMs: number
  /** What an earlier agent left, whatever it is. */
  readonly text: string | undefined
  readonly bootBaseMs: number | undefined
}

/** Undefined for a host that does not say how long it is up. */
async function readBase(root: HostRoot): Promise<Base | undefined> {
  const text = await root.readText(steadyTimeFile)
  const bootId = await readBootId(root)
  const uptimeMs = await readUptimeMs(root)
  if (uptimeMs === undefined) return undefined
  const [, base] = text?.startsWith(`${bootId} `) ? (/ (-?\d+)\n$/.exec(text) ?? []) : []
  return { bootId, uptimeMs, text, bootBaseMs: base === undefined ? undefined : Number(base) }
}
