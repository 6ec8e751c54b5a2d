/**
 * A Skyhook that asks for an uninstall is gone only when each of its hosts has uninstalled, and no host begins for it
 * afterwards. No uninstall runs on a host for a package that was never installed there, or that a Skyhook still wants.
 * Judged by the steps that hosts have run and by the history of the Skyhook.
 */
import { packageKeyOf } from './open-packages.ts'
import { nodeStateKey } from '../../src/schemas/annotations.ts'
import { parseJson } from '../../src/schemas/json.ts'
import type { PackageSpec, Skyhook } from '../../src/schemas/skyhook.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { readSlot, type Lease } from '../../src/lease/slot.ts'
import type { HostStep } from '../kit/host/observer.ts'
import type { Fact, Host } from './facts.ts'
import { hostOfClient, isSelected, nodeOf, skyhookOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'

/** An agent that is silent for ten minutes counts as dead, and nobody waits for its host. */
const deadMs = 9.5 * 60_000
/** Edits, and Nodes that register, are known everywhere after this. */
const knownMs = 120_000

/** What is on a host of a package. */
type Installed = { readonly uid: string | undefined; hasFailedUninstall: boolean }

const asksForUninstall = ({ uninstall }: PackageSpec): boolean => uninstall?.enabled === true

export const uninstalled: Promised = {
  name: 'uninstalled',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By host, then by `skyhook/package`. */
    const hosts = new Map<string, Map<string, Installed>>()
    /** By host and package: what was started, or may have been as far as an agent can know. */
    const everInstalled = new Set<string>()
    /** Without answers of the bus, an agent cannot know whether a step has run that it was about to start. */
    const hadBusFault = new Set<string>()
    /** Uids of Skyhooks that asked for an uninstall. */
    const gone = new Set<string>()
    const agentSeenAtMs = new Map<string, number>()
    /** By host: until when its cluster side was changed by people, so that nobody can know of its work. */
    const unknownUntilMs = new Map<string, number>()
    /** By Skyhook: when its spec was changed last. */
    const editedAtMs = new Map<string, number>()
    let isRestored = false
    let checks = 0

    const installedOn = (host: string): Map<string, Installed> => {
      const installed = hosts.get(host) ?? new Map<string, Installed>()
      hosts.set(host, installed)
      return installed
    }

    const isExcepted = (view: Host, skyhook: Skyhook, atMs: number): boolean =>
      isRestored ||
      !isSelected(skyhook, nodeOf(world, view)) ||
      (unknownUntilMs.get(view.name) ?? 0) > atMs ||
      atMs - (agentSeenAtMs.get(view.name) ?? 0) > deadMs

    function judgeRemoval(skyhook: Skyhook, client: string, atMs: number): void {
      const { name, uid } = skyhook.metadata
      const packages = Object.entries(skyhook.spec.packages ?? {}).filter(([, spec]) => asksForUninstall(spec))
      if (packages.length === 0) return
      gone.add(uid)
      for (const view of world.hosts.values()) {
        if (isExcepted(view, skyhook, atMs)) continue
        checks++
        for (const [packageName] of packages) {
          const installed = hosts.get(view.name)?.get(`${name}/${packageName}`)
          if (installed === undefined || installed.uid !== uid || installed.hasFailedUninstall) continue
          violate(`${name} is gone (by ${client}) while ${view.name} has ${packageName}, which it asks to uninstall`)
        }
      }
    }

    function seeStart(view: Host, step: HostStep, atMs: number): void {
      const { skyhook, skyhookUid: uid, package: name, mode } = step
      const key = packageKeyOf(step)
      const installed = installedOn(view.name)
      if (mode.startsWith('uninstall')) return judgeUninstall(view, step, atMs)
      if (uid !== undefined && gone.has(uid) && !isRestored && installed.get(key)?.uid !== uid)
        if ((unknownUntilMs.get(view.name) ?? 0) <= atMs)
          violate(`${view.name} begins ${mode} of ${name} for ${skyhook}, which is gone and asked for an uninstall`)
      everInstalled.add(`${view.name} ${key}`)
      installed.set(key, { uid, hasFailedUninstall: false })
    }

    function judgeUninstall(view: Host, step: HostStep, atMs: number): void {
      const { skyhook, package: name, version } = step
      checks++
      if (!everInstalled.has(`${view.name} ${packageKeyOf(step)}`) && !hadBusFault.has(view.name))
        return violate(`${view.name} uninstalls ${name} of ${skyhook}, which was never installed there`)
      const live = skyhookOf(world, skyhook)
      const wanted = live?.metadata.deletionTimestamp === undefined ? live?.spec.packages?.[name] : undefined
      if (wanted === undefined || wanted.version !== version || wanted.uninstall?.apply === true) return
      if (isRestored || !isSelected(live, nodeOf(world, view))) return
      if (atMs - (editedAtMs.get(skyhook) ?? -Infinity) < knownMs || !view.reachesApi()) return
      if (evidence.health.sinceMs(view.name) === undefined) return
      violate(`${view.name} uninstalls ${name} ${version}, which ${skyhook} still wants`)
    }

    function seeHost(event: Extract<Fact, { kind: 'host' }>, atMs: number): void {
      const { host, event: what } = event
      const view = world.hosts.get(host)
      if (view === undefined) return
      if (what.event === 'wiped') hosts.delete(host)
      if (what.event === 'stepRefused') everInstalled.add(`${host} ${packageKeyOf(what.step)}`)
      if (what.event === 'stepStarted') return seeStart(view, what.step, atMs)
      if (what.event !== 'stepEnded' || !what.step.mode.startsWith('uninstall')) return
      const isSuccess = what.end.outcome === 'exited' && what.end.code === 0
      const entry = installedOn(host).get(packageKeyOf(what.step))
      if (isSuccess && what.step.mode === 'uninstall-check') installedOn(host).delete(packageKeyOf(what.step))
      else if (!isSuccess && entry) entry.hasFailedUninstall = true
    }

    function seeCommit({ change, client }: Extract<Fact, { kind: 'commit' }>, atMs: number): void {
      const { resource, type, version, previous } = change
      const { metadata } = version.object
      if (resource.plural === 'skyhooks') {
        if (type === 'DELETED') return judgeRemoval(version.object as unknown as Skyhook, client, atMs)
        if (metadata.generation !== previous?.object.metadata.generation) editedAtMs.set(metadata.name, atMs)
      }
      if (resource.plural === 'nodes') {
        const view = evidence.hostNamed(metadata.name)
        // the operator had installed it before there were agents
        if (view !== undefined && hostOfClient(client, 'agent') === undefined)
          for (const key of packagesShownBy(version.object)) everInstalled.add(`${view.name} ${key}`)
        const isEdited = client === 'admin' && metaOf(version.object) !== metaOf(previous?.object)
        const hasPackages = view !== undefined && installedOn(view.name).size > 0
        if (hasPackages && (isEdited || type !== 'MODIFIED')) unknownUntilMs.set(view.name, atMs + knownMs)
      }
      if (resource.plural !== 'leases' || type !== 'DELETED' || hostOfClient(client, 'agent') !== undefined) return
      const slot = readSlot(version.object as unknown as Lease)
      const view = slot && evidence.hostNamed(slot.holder)
      if (view) unknownUntilMs.set(view.name, atMs + knownMs)
    }

    return {
      on(event, atMs) {
        evidence.see(event)
        if (event.kind === 'restored') isRestored = true
        else if (event.kind === 'action' && event.action.kind === 'bus-faults') hadBusFault.add(event.action.node ?? '')
        else if (event.kind === 'host') seeHost(event, atMs)
        else if (event.kind === 'commit') seeCommit(event, atMs)
      },
      tick(atMs) {
        evidence.tick(atMs)
        for (const { name, agents } of world.hosts.values()) if (agents().length > 0) agentSeenAtMs.set(name, atMs)
      },
      checks: () => checks,
    }
  },
}

const statePrefix = nodeStateKey('')

/** `skyhook/package` of the annotations of a Node. */
const packagesShownBy = ({ metadata: { annotations = {} } }: Pick<KubernetesNode, 'metadata'>): readonly string[] =>
  Object.entries(annotations)
    .filter(([key]) => key.startsWith(statePrefix))
    .flatMap(([key, text]) =>
      Object.keys((parseJson(text) as object | undefined) ?? {}).map(
        (entry) => `${key.slice(statePrefix.length)}/${entry.split('|')[0]}`,
      ),
    )

const metaOf = (node: Pick<KubernetesNode, 'metadata'> | undefined): string =>
  JSON.stringify([node?.metadata.annotations, node?.metadata.labels])
