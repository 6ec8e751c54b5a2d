/** A run of a simulated fleet, recorded as a campaign on real hosts is: the record has to say what the run said. */
import type { AuditedRequest } from './audit.ts'
import type { Deletion, Evidence, RecordedFault } from './evidence.ts'
import type { StepLine } from './step-lines.ts'
import { emptyView, moments, type Version } from '../cluster/moments.ts'
import type { HostEvent } from '../host/observer.ts'
import { faultKinds } from '../fleet/action-kinds.ts'
import { createChance } from '../fleet/chance.ts'
import { hostOfClient, skyhookOf } from '../../promises/cluster.ts'
import type { Fact, World } from '../../promises/facts.ts'
import type { Promised } from '../../promises/promised.ts'

const kinds = ['nodes', 'leases', 'skyhooks', 'pods']
/** A watch event comes so long after its change. */
const maxDelayMs = 60

type OpenFault = RecordedFault & { endedMs: number }
type Of<K extends Fact['kind']> = Extract<Fact, { readonly kind: K }>

export function recordFleet(seed = 1): Promised & { readonly evidence: () => Evidence } {
  const chance = createChance(seed, 77)
  const versions: Version[] = []
  const audit: AuditedRequest[] = []
  const steps = new Map<string, StepLine[]>()
  const faults: OpenFault[] = []
  const deletions: Deletion[] = []
  const ownVersions = new Set<number>()
  /** By node: it goes down for it. */
  const downs = new Map<string, OpenFault | 'asked'>()
  const lasting = new Map<number, OpenFault>()
  let world: World
  let nowMs = 0
  let seenMs = 0

  const nodeOf = (host = ''): string => world.hosts.get(host)?.nodeName() ?? host
  const record = (fault: Pick<RecordedFault, 'node' | 'down'>, endedMs = Infinity): OpenFault => {
    const open = { ...fault, startedMs: nowMs, endedMs }
    faults.push(open)
    return open
  }
  const end = (fault: OpenFault | 'asked' | undefined): void => {
    if (typeof fault === 'object') fault.endedMs = nowMs
  }

  function seeCommit({ change, client }: Of<'commit'>): void {
    const { type, version, revision: resourceVersion, resource } = change
    if (!kinds.includes(resource.plural)) return
    seenMs = Math.max(seenMs, nowMs + chance.integer(0, maxDelayMs))
    const seen = {
      kind: resource.plural,
      type,
      object: version.object,
      resourceVersion,
      atMs: seenMs,
    } as unknown as Version
    versions.push(seen)
    if (client !== 'admin') return
    if (type !== 'DELETED') ownVersions.add(resourceVersion)
    else if (seen.kind === 'nodes') deletions.push({ node: seen.object.metadata.name, atMs: nowMs, what: 'Node' })
    else if (seen.kind === 'leases')
      deletions.push({ node: seen.object.spec?.holderIdentity ?? '', atMs: nowMs, what: 'slot' })
  }

  function seeAnswer({ entry: { client, resource, query, code: status, ...request } }: Of<'answered'>): void {
    const host = hostOfClient(client, 'agent') ?? hostOfClient(client, 'census')
    if (host === undefined) return
    const [plural = '', subresource] = resource.split('/')
    const uri = `/?${new URLSearchParams(query as Record<string, string>).toString()}`
    const at = { receivedMs: nowMs, answeredMs: nowMs }
    audit.push({ ...request, ...at, node: nodeOf(host), resource: plural, subresource, uri, status })
  }

  function seeHost(node: string, event: HostEvent): void {
    const lines = steps.get(node) ?? []
    steps.set(node, lines)
    const write = (line: Omit<StepLine, 'atMs'>): void => void lines.push({ ...line, atMs: nowMs })
    switch (event.event) {
      case 'stepStarted':
      case 'stepEnded': {
        const isEnd = event.event === 'stepEnded'
        if (isEnd && (event.end.outcome !== 'exited' || event.end.code !== 0)) return
        const { skyhook, package: name, version, mode, path } = event.step
        // as the round of an edit, which each of our scripts has in its text
        const round = `${path} ${JSON.stringify(skyhookOf(world, skyhook)?.spec.packages?.[name])}`
        return write({ skyhook, package: name, version, mode, round, what: isEnd ? 'ends' : 'begins' })
      }
      case 'restartRequested': {
        const service = { skyhook: '-', package: 'service', version: '-', mode: 'started', round: '-' }
        return write({ ...service, what: 'begins' })
      }
      case 'rebootRequested':
        return void downs.set(node, 'asked')
      case 'wentDown':
        if (!downs.has(node)) downs.set(node, record({ node, down: event.how }))
        return
      case 'booted':
        end(downs.get(node))
        return void downs.delete(node)
      case 'agentEnded':
        return void record({ node: event.kind === 'agent' ? node : undefined }, nowMs)
      case 'agentStarted':
      case 'effect':
      case 'imageStored':
      case 'restartEnded':
      case 'runRequested':
      case 'shutdownStarted':
      case 'staticPodsRun':
      case 'stepRefused':
      case 'stepLost':
      case 'wiped':
    }
  }

  function seeAction({ action, what }: Of<'action'>): void {
    const { id, kind, node } = action
    const isOfAll = node === undefined || /^(api|watches)/.test(kind)
    if (!(kind in faultKinds)) return
    if (what === 'begins') lasting.set(id, record({ node: isOfAll ? undefined : nodeOf(node) }))
    else end(lasting.get(id))
  }

  return {
    name: 'record',
    watch(watched) {
      world = watched
      return {
        on(fact, atMs) {
          nowMs = atMs
          if (fact.kind === 'commit') seeCommit(fact)
          else if (fact.kind === 'answered') seeAnswer(fact)
          else if (fact.kind === 'host') seeHost(nodeOf(fact.host), fact.event)
          else if (fact.kind === 'action') seeAction(fact)
        },
        tick: (atMs) => void (nowMs = atMs),
        checks: () => versions.length,
      }
    },
    evidence: () => ({
      moments: [...moments(emptyView(), versions)],
      audit,
      steps: new Map([...world.hosts.keys()].map((host) => [nodeOf(host), steps.get(nodeOf(host)) ?? []])),
      faults: faults.map((one) => ({ ...one, endedMs: Math.min(one.endedMs, nowMs) })),
      deletions,
      ownVersions,
      skyhooks: world.plan.skyhooks.map(({ name }) => name),
      endedMs: nowMs,
    }),
  }
}
