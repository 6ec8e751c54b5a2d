/** What one node of a simulated fleet does for a Skyhook, as its host and its Node show it. */
import { cordonKey } from '../../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { FleetScene } from '../../kit/fleet/fleet-scene.ts'
import type { HostStep } from '../../kit/host/observer.ts'
import { type Deed, interruptDeed } from '../../kit/plan/deeds.ts'

export type FleetHistory = {
  /**
   * Deeds of a host by its name, since `sinceMs`. A host does not know for which packages an interrupt is. `isStopped`:
   * of a stage that was under way then, whether it counts only if another step of it starts.
   */
  deeds(host: string, sinceMs: number, isStopped: (deed: Deed) => boolean): readonly Deed[]
  /** Units of the steps that run on a host. */
  running(host: string): ReadonlySet<string>
  /** The most hosts that were out at once since then: cordoned, at a step, or interrupted. */
  mostOut(sinceMs: number): number
}

type Entry = {
  readonly host: string
  readonly deed: Deed
  /** When it ended; as long as it has not, when its last step started. */
  readonly atMs: number
  /** When its last step started. */
  readonly startedAtMs: number
}

/** Follows all hosts and Nodes from now on. */
export function followFleet(scene: FleetScene, skyhook: string): FleetHistory {
  const { clock, server, hosts } = scene.simulation
  const entries: Entry[] = []
  const marks: { readonly host: string; readonly atMs: number; readonly isMarked: boolean }[] = []
  const outs: { readonly atMs: number; readonly out: number }[] = []
  const add = (host: string, deeds: readonly Deed[]): void => {
    const atMs = clock.monotonicMs()
    for (const deed of deeds) entries.push({ host, deed, atMs, startedAtMs: atMs })
  }
  const runningByHost = new Map([...hosts.keys()].map((name) => [name, new Set<string>()]))
  const running = (name: string): Set<string> => runningByHost.get(name) ?? new Set()
  const isOut = (name: string): boolean =>
    marks.findLast(({ host }) => host === name)?.isMarked === true ||
    hosts.get(name)?.truth.isInterrupted() === true ||
    running(name).size > 0
  for (const [name, { host }] of hosts)
    host.observe((event) => {
      const now = { host: name, atMs: clock.monotonicMs() }
      const hasEnded = event.event === 'stepEnded' && event.end.outcome === 'exited'
      if (event.event === 'stepStarted' || hasEnded) addStage(entries, { ...now, step: event.step })
      else if (event.event === 'restartRequested')
        add(name, interruptDeed({ type: 'service', services: [event.unit] }, []))
      else if (event.event === 'rebootRequested' && event.answer === 'accepted')
        add(name, interruptDeed({ type: 'reboot' }, []))
      else if (event.event === 'restartEnded' || event.event === 'booted') endInterrupt(entries, now)
      if (event.event === 'stepStarted') running(name).add(event.step.unit)
      if (event.event === 'stepEnded' || event.event === 'stepLost') running(name).delete(event.step.unit)
      outs.push({ atMs: now.atMs, out: [...hosts.keys()].filter(isOut).length })
    })
  server.observe({
    committed({ resource, version, previous }) {
      if (resource.plural !== 'nodes') return
      const marked = (object: object | undefined): boolean =>
        (object as KubernetesNode | undefined)?.metadata.annotations?.[cordonKey(skyhook)] === 'true'
      if (marked(version.object) === marked(previous?.object)) return
      const host = [...hosts.values()].find((one) => one.nodeName() === version.object.metadata.name)
      if (host === undefined) return
      const isMarked = marked(version.object)
      marks.push({ host: host.name, atMs: clock.monotonicMs(), isMarked })
      if (isMarked) add(host.name, [{ deed: 'drain' }])
    },
  })
  return {
    deeds(host, sinceMs, isStopped) {
      const own = entries
        .filter((entry) => entry.host === host && entry.atMs >= sinceMs)
        .filter(({ deed, startedAtMs }) => startedAtMs >= sinceMs || !isStopped(deed))
      const ofHost = marks.filter((mark) => mark.host === host)
      const isCordoned = ofHost.findLast(({ atMs }) => atMs < sinceMs)?.isMarked === true
      const endsAtMs = ofHost.find(({ atMs, isMarked }) => atMs >= sinceMs && !isMarked)?.atMs ?? Infinity
      // a cordon that stands counts if something is done under it
      const isUsed = isCordoned && (own[0]?.atMs ?? Infinity) <= endsAtMs
      return [...(isUsed ? [{ deed: 'drain' } as const] : []), ...own.map(({ deed }) => deed)]
    },
    running,
    mostOut: (sinceMs) => Math.max(0, ...outs.flatMap(({ atMs, out }) => (atMs >= sinceMs ? [out] : []))),
  }
}

/** A stage goes on with its next step; one that is repeated before anything else of its package happens starts over. */
function addStage(
  entries: Entry[],
  { host, atMs, step }: Pick<Entry, 'host' | 'atMs'> & { readonly step: HostStep },
): void {
  const stage = step.mode.replace(/-check$/, '')
  const at = entries.findLastIndex(
    (one) =>
      one.host === host &&
      (one.deed.deed === 'interrupt' ||
        (one.deed.deed === 'stage' && one.deed.package === step.package && one.deed.version === step.version)),
  )
  const last = entries[at]
  const isOngoing = last?.deed.deed === 'stage' && last.deed.stage === stage
  const deed: Deed = { deed: 'stage', package: step.package, version: step.version, stage }
  // it is as late as its last step: what ends after a plan is done after it
  if (isOngoing) entries.splice(at, 1)
  entries.push({ host, deed, atMs, startedAtMs: step.startedAtMs })
}

/** It is as late as its end, too. */
function endInterrupt(entries: Entry[], { host, atMs }: Pick<Entry, 'host' | 'atMs'>): void {
  const at = entries.findLastIndex((one) => one.host === host)
  const last = entries[at]
  if (last?.deed.deed === 'interrupt') entries[at] = { ...last, atMs }
}
