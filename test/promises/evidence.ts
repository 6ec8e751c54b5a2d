/** What all rules of one run share: each event is taken in once, whichever rule sees it first. */
import type { Fact, Host, World } from './facts.ts'
import { hostOfClient } from './cluster.ts'
import { followDisruption, type Disruption } from './disruption.ts'
import { followWork, type FinishedWork } from './finished-work.ts'
import { followPackages } from './open-packages.ts'
import { followHealth, type Health } from './health.ts'
import { followSoaks, type Soaks } from './soaks.ts'

export type Evidence = {
  readonly disruption: Disruption
  readonly work: FinishedWork
  readonly health: Health
  readonly soaks: Soaks
  /** Of the current event; events of one instant follow each other. */
  readonly order: () => number
  /** The host of a Node of this name, also of a name that it has given up. */
  readonly hostNamed: (nodeName: string) => Host | undefined
  /**
   * An older copy of etcd was put in place, and the agent has not written its Node since: it may not know yet. A
   * request that was under way may come a little later.
   */
  readonly isBlind: (host: string) => boolean
  /** The host went down, and its static pods, if it has any, have not run since. */
  readonly lacksStaticPods: (host: string) => boolean
  readonly see: (event: Fact) => void
  readonly tick: (atMs: number) => void
}

/** A request that was decided on before is answered by then. */
const underWayMs = 1_000

const runs = new WeakMap<World, Evidence>()

export function evidenceOf(world: World): Evidence {
  const known = runs.get(world)
  if (known) return known
  const evidence = collect(world)
  runs.set(world, evidence)
  return evidence
}

function collect(world: World): Evidence {
  const packages = followPackages(world.server)
  const work = followWork(world, packages)
  const health = followHealth(world)
  const names = new Map<string, Host>()
  const hostNamed = (nodeName: string): Host | undefined => {
    const known = names.get(nodeName)
    if (known) return known
    for (const view of world.hosts.values()) names.set(view.nodeName(), view)
    return names.get(nodeName)
  }
  const disruption = followDisruption(world, packages, hostNamed)
  const soaks = followSoaks(world, disruption, work, hostNamed)
  /** By host: until when. */
  const blind = new Map<string, number>()
  const lacking = new Set<string>()
  let order = 0
  let last: Fact | undefined
  let tickedAtMs = -1
  return {
    disruption,
    work,
    health,
    soaks,
    order: () => order,
    hostNamed,
    isBlind: (host) => (blind.get(host) ?? 0) > world.clock.monotonicMs(),
    lacksStaticPods: (host) => lacking.has(host),
    see(event) {
      if (event === last) return
      last = event
      order++
      if (event.kind === 'restored') for (const host of world.hosts.keys()) blind.set(host, Infinity)
      else if (event.kind === 'commit' && event.change.resource.plural === 'nodes') {
        const host = hostOfClient(event.client, 'agent') ?? ''
        if (blind.get(host) === Infinity) blind.set(host, world.clock.monotonicMs() + underWayMs)
      }
      if (event.kind === 'host') {
        const { event: what } = event.event
        if (what === 'wentDown') lacking.add(event.host)
        if (what === 'staticPodsRun') lacking.delete(event.host)
      }
      health.see(event)
      work.see(event)
      packages.see(event)
      disruption.see(event)
      soaks.see(event)
    },
    tick(atMs) {
      if (atMs === tickedAtMs) return
      tickedAtMs = atMs
      health.tick(atMs)
    },
  }
}
