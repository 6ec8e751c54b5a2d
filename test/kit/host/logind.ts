/** logind of a simulated host: whether a reboot is allowed, and what comes of it. */
import { BusError } from '../../../src/host/dbus/errors.ts'
import type { HostEvent } from './observer.ts'

/** What happens to the next request for a reboot. `lost`: it is accepted, and the host stays up. */
export type RebootFate = 'carried-out' | 'lost' | 'refused'

/** By default it blocks shutdowns. */
export type Inhibitor = { readonly who: string; readonly why: string; readonly what?: string; readonly mode?: string }

const blocksReboot = ({ what = 'shutdown', mode = 'block' }: Inhibitor): boolean =>
  what.split(':').includes('shutdown') && mode !== 'delay'

export type Logind = ReturnType<typeof createLogind>

export function createLogind(host: {
  readonly isStopping: () => boolean
  readonly shutDown: () => void
  readonly tell: (event: HostEvent) => void
}) {
  let inhibitors: readonly Inhibitor[] = []
  let fate: RebootFate = 'carried-out'
  return {
    isPreparing: host.isStopping,
    inhibitors: () => inhibitors,
    setInhibitors: (next: readonly Inhibitor[]) => void (inhibitors = next),
    setFate: (next: RebootFate) => void (fate = next),
    /** Throws BusError when the host stays up. */
    reboot(): void {
      if (host.isStopping())
        throw new BusError('org.freedesktop.login1.OperationInProgress', 'There is already a shutdown in progress')
      const isRefused = fate === 'refused' || inhibitors.some(blocksReboot)
      host.tell({ event: 'rebootRequested', answer: isRefused ? 'refused' : 'accepted', isLost: fate === 'lost' })
      if (isRefused) throw new BusError('org.freedesktop.login1.BlockedByInhibitorLock', 'Operation inhibited')
      if (fate === 'carried-out') host.shutDown()
    },
  }
}
