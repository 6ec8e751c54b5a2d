/** Whether a simulated host is out of service for the sake of its agent, judged by what has happened on it alone. */
import type { HostStep } from './observer.ts'
import type { SimulatedHost } from './simulated-host.ts'

export type HostTruth = {
  /** `skyhook/package` of each change that was started and has not been finished. */
  readonly openPackages: () => ReadonlySet<string>
  /** A service restarts, or the host has begun to reboot because it was asked to. */
  readonly isInterrupted: () => boolean
  /** Changed and not complete, or interrupted. */
  readonly isOut: () => boolean
  readonly stop: () => void
}

/** `isLast`: the package is done when this step has succeeded. Follows the host from now on. */
export function followTruth(host: SimulatedHost, isLast: (step: HostStep) => boolean): HostTruth {
  const open = new Set<string>()
  const restarting = new Set<string>()
  let isRebooting = false
  const nameOf = (step: HostStep): string => `${step.skyhook}/${step.package}`
  const stop = host.observe((one) => {
    if (one.event === 'stepStarted') open.add(nameOf(one.step))
    else if (one.event === 'stepEnded') {
      if (one.end.outcome === 'exited' && one.end.code === 0 && isLast(one.step)) open.delete(nameOf(one.step))
    } else if (one.event === 'restartRequested') restarting.add(one.unit)
    else if (one.event === 'restartEnded') restarting.delete(one.unit)
    else if (one.event === 'shutdownStarted') isRebooting = true
    else if (one.event === 'booted') {
      isRebooting = false
      restarting.clear()
    } else if (one.event === 'wiped') open.clear()
  })
  const isInterrupted = (): boolean => isRebooting || restarting.size > 0
  return { openPackages: () => open, isInterrupted, isOut: () => open.size > 0 || isInterrupted(), stop }
}
