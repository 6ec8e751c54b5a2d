/** Which packages are finished on which hosts, by their steps alone. */
import { canonicalJson } from '../../src/schemas/canonical-json.ts'
import { perObject } from '../../src/schemas/per-object.ts'
import type { PackageSpec, Skyhook } from '../../src/schemas/skyhook.ts'
import type { Fact, World } from './facts.ts'
import { skyhookOf } from './cluster.ts'
import { type OpenPackages, packageKeyOf } from './open-packages.ts'

export type FinishedWork = ReturnType<typeof followWork>

/** What was last run of a package with success. */
type Last = { readonly version: string; readonly isUninstall: boolean; content: string | undefined }

export function followWork(world: World, packages: OpenPackages) {
  /** By host, then by `skyhook/package`. */
  const hosts = new Map<string, Map<string, Last>>()
  const contentsAtConfig = new Map<string, string>()

  const lastOf = (host: string): Map<string, Last> => {
    const last = hosts.get(host) ?? new Map<string, Last>()
    hosts.set(host, last)
    return last
  }

  const isFinished = (host: string, key: string, wanted: PackageSpec): boolean => {
    const last = hosts.get(host)?.get(key)
    if (packages.has(host, key)) return false
    if (wanted.uninstall?.enabled === true && wanted.uninstall.apply === true)
      return last === undefined || last.isUninstall
    if (last === undefined || last.isUninstall) return false
    return last.version === wanted.version && last.content === contentOf(wanted)
  }

  /** Of a Skyhook that is gone: one that is created again under its name finds what was finished, and begins the rest. */
  function forgetOpen({ resource, version }: Extract<Fact, { kind: 'commit' }>['change']): void {
    if (resource.plural !== 'skyhooks') return
    for (const [host, last] of hosts)
      for (const key of packages.keysOf(host)) if (key.startsWith(`${version.object.metadata.name}/`)) last.delete(key)
  }

  return {
    /** Packages of the spec that the host still has to run something for. */
    unfinished: (host: string, { metadata, spec }: Skyhook): readonly string[] =>
      Object.entries(spec.packages ?? {}).flatMap(([name, wanted]) =>
        isFinished(host, `${metadata.name}/${name}`, wanted) ? [] : [name],
      ),
    /** Packages that the host still has to uninstall once the Skyhook is deleted. */
    toUninstall: (host: string, { metadata, spec }: Skyhook): readonly string[] =>
      Object.entries(spec.packages ?? {}).flatMap(([name, { uninstall }]) =>
        uninstall?.enabled === true && hosts.get(host)?.get(`${metadata.name}/${name}`)?.isUninstall === false
          ? [name]
          : [],
      ),
    /** Before `packages`, which then no longer know what was open. */
    see(event: Fact): void {
      if (event.kind === 'commit' && event.change.type === 'DELETED') forgetOpen(event.change)
      if (event.kind !== 'host') return
      const { host, event: what } = event
      if (what.event === 'wiped') hosts.delete(host)
      if (what.event !== 'stepStarted' && what.event !== 'stepEnded') return
      const { step } = what
      const key = packageKeyOf(step)
      if (what.event === 'stepStarted') {
        const wanted = skyhookOf(world, step.skyhook)?.spec.packages?.[step.package]
        if (step.mode === 'config' && wanted !== undefined) contentsAtConfig.set(`${host}/${key}`, contentOf(wanted))
      } else if (what.end.outcome === 'exited' && what.end.code === 0) {
        const content = contentsAtConfig.get(`${host}/${key}`)
        lastOf(host).set(key, { version: step.version, isUninstall: step.mode.startsWith('uninstall'), content })
      }
    },
  }
}

/** What decides whether a package has to run again. */
const contentOf = perObject(({ version, configMap, env }: PackageSpec): string =>
  canonicalJson({ version, configMap, env }),
)
