/** Which packages of a host are between their first step and their last, by its steps and interrupts alone. */
import type { SimulatedApiServer } from '../api-server/server.ts'
import type { HostStep } from '../host/observer.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import type { FleetEvent } from '../run/world-view.ts'

type Change = {
  /** An installation under a spec with an interrupt: post-interrupt is its last stage, not config. */
  awaitsInterrupt: boolean
  hasPassedConfig: boolean
}

export type OpenPackages = ReturnType<typeof followPackages>

/** Where a spec leaves open whether an interrupt follows, the change counts as over: the next step opens it again. */
export function followPackages(server: SimulatedApiServer) {
  const hosts = new Map<string, Map<string, Change>>()

  const hasInterrupt = (key: string): boolean => {
    const [skyhook = '', name = ''] = key.split('/')
    const { spec } = (server.object('skyhooks', undefined, skyhook) ?? {}) as Partial<Skyhook>
    return spec?.packages?.[name]?.interrupt !== undefined
  }

  const changesOf = (host: string): Map<string, Change> => {
    const changes = hosts.get(host) ?? new Map<string, Change>()
    hosts.set(host, changes)
    return changes
  }

  function started(changes: Map<string, Change>, { mode, ...step }: HostStep): void {
    const key = `${step.skyhook}/${step.package}`
    const change = changes.get(key) ?? { awaitsInterrupt: false, hasPassedConfig: false }
    if (mode === 'apply' || mode === 'upgrade') change.awaitsInterrupt = hasInterrupt(key)
    if (!mode.startsWith('post-interrupt')) change.hasPassedConfig = false
    changes.set(key, change)
  }

  function passed(changes: Map<string, Change>, { mode, ...step }: HostStep): void {
    const key = `${step.skyhook}/${step.package}`
    const change = changes.get(key)
    if (mode === 'uninstall-check' || mode === 'post-interrupt-check') changes.delete(key)
    if (mode !== 'config-check' || change === undefined) return
    if (change.awaitsInterrupt && hasInterrupt(key)) change.hasPassedConfig = true
    else changes.delete(key)
  }

  return {
    /** `skyhook/package`. */
    keysOf: (host: string): readonly string[] => [...(hosts.get(host)?.keys() ?? [])],
    has: (host: string, key: string): boolean => hosts.get(host)?.has(key) ?? false,
    see(event: FleetEvent): void {
      if (event.kind === 'commit' && event.change.resource.plural === 'skyhooks') {
        for (const changes of hosts.values())
          for (const [key, change] of changes) if (change.hasPassedConfig && !hasInterrupt(key)) changes.delete(key)
      }
      if (event.kind !== 'host') return
      const { host, event: what } = event
      if (what.event === 'stepStarted') started(changesOf(host), what.step)
      else if (what.event === 'stepEnded' && what.end.outcome === 'exited' && what.end.code === 0)
        passed(changesOf(host), what.step)
      else if (what.event === 'restartRequested' || what.event === 'rebootRequested')
        for (const change of changesOf(host).values()) change.awaitsInterrupt = false
      else if (what.event === 'wiped') hosts.delete(host)
    },
  }
}
