/** Which packages of a host are between their first step and their last, by its steps and interrupts alone. */
import type { HostStep } from '../kit/host/observer.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import type { Fact, World } from './facts.ts'

type Change = {
  readonly version: string
  /** An installation under a spec with an interrupt: post-interrupt is its last stage, not config. */
  awaitsInterrupt: boolean
  hasPassedConfig: boolean
}

/** `skyhook/package` of a step. */
export const packageKeyOf = ({ skyhook, package: name }: Pick<HostStep, 'skyhook' | 'package'>): string =>
  `${skyhook}/${name}`

export type OpenPackages = ReturnType<typeof followPackages>

/** Where a spec leaves open whether an interrupt follows, the change counts as over: the next step opens it again. */
export function followPackages(server: World['server']) {
  const hosts = new Map<string, Map<string, Change>>()
  /** By host, then by `skyhook/package`: the version that was finished last. */
  const installed = new Map<string, Map<string, string>>()

  const hasInterrupt = (key: string): boolean => {
    const [skyhook = '', name = ''] = key.split('/')
    const { spec } = (server.object('skyhooks', undefined, skyhook) ?? {}) as Partial<Skyhook>
    const interrupt = spec?.packages?.[name]?.interrupt
    return interrupt !== undefined && interrupt.when !== 'required'
  }

  const changesOf = (host: string): Map<string, Change> => {
    const changes = hosts.get(host) ?? new Map<string, Change>()
    hosts.set(host, changes)
    return changes
  }

  const installedOn = (host: string): Map<string, string> => {
    const versions = installed.get(host) ?? new Map<string, string>()
    installed.set(host, versions)
    return versions
  }

  function started(host: string, { mode, version, ...step }: HostStep): void {
    const key = packageKeyOf(step)
    const known = changesOf(host).get(key)
    const change = known?.version === version ? known : { version, awaitsInterrupt: false, hasPassedConfig: false }
    // a package without steps to apply is installed by its configuration
    const isInstalled = mode === 'config' && installedOn(host).get(key) !== version
    if (mode === 'apply' || mode === 'upgrade' || isInstalled) change.awaitsInterrupt = hasInterrupt(key)
    if (!mode.startsWith('post-interrupt')) change.hasPassedConfig = false
    changesOf(host).set(key, change)
  }

  function passed(host: string, { mode, version, ...step }: HostStep): void {
    const key = packageKeyOf(step)
    const changes = changesOf(host)
    const change = changes.get(key)
    if (mode === 'uninstall-check') installedOn(host).delete(key)
    if (mode === 'uninstall-check' || mode === 'post-interrupt-check') changes.delete(key)
    if (mode === 'config-check' || mode === 'post-interrupt-check') installedOn(host).set(key, version)
    if (mode !== 'config-check' || change === undefined) return
    if (change.awaitsInterrupt && hasInterrupt(key)) change.hasPassedConfig = true
    else changes.delete(key)
  }

  return {
    /** `skyhook/package`. */
    keysOf: (host: string): readonly string[] => [...(hosts.get(host)?.keys() ?? [])],
    has: (host: string, key: string): boolean => hosts.get(host)?.has(key) ?? false,
    see(event: Fact): void {
      if (event.kind === 'commit' && event.change.resource.plural === 'skyhooks') {
        for (const changes of hosts.values())
          for (const [key, change] of changes) if (change.hasPassedConfig && !hasInterrupt(key)) changes.delete(key)
      }
      if (event.kind !== 'host') return
      const { host, event: what } = event
      if (what.event === 'stepStarted') started(host, what.step)
      else if (what.event === 'stepEnded' && what.end.outcome === 'exited' && what.end.code === 0)
        passed(host, what.step)
      else if (what.event === 'restartRequested' || what.event === 'rebootRequested')
        for (const change of changesOf(host).values()) change.awaitsInterrupt = false
      else if (what.event === 'wiped') {
        hosts.delete(host)
        installed.delete(host)
      }
    },
  }
}
