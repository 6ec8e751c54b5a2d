/**
 * The life of a simulated node, told as facts and judged by the promises. What people, kubelet and garbage collector
 * do to the cluster shows when it is looked at again: before each effect of the agent, and after each of its rounds.
 */
import { skyhookTypeMeta } from '../../src/schemas/api.ts'
import type { InterruptRun } from '../../src/schemas/package-record.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { bootstrapScope, controlPlaneScope, skyhookScope } from '../../src/lease/names.ts'
import { newLease, type SlotTarget } from '../../src/lease/slot.ts'
import type { StepEnd } from '../../src/schemas/step-end.ts'
import type { Pod } from '../../src/stages/model/pods.ts'
import type { StartStep } from '../../src/stages/model/plan.ts'
import type { OwnSlot, SkyhookView } from '../../src/stages/model/snapshot.ts'
import type { AuditEntry } from '../kit/api-server/audit.ts'
import { resources } from '../kit/api-server/resources.ts'
import type { EventType, SimObject, Version } from '../kit/api-server/versions.ts'
import type { HostEvent, HostStep } from '../kit/host/observer.ts'
import type { NodeSimulator } from '../kit/node-simulator/node-simulator.ts'
import type { NodeObserver } from '../kit/node-simulator/node-state.ts'
import type { Fact, Host, World } from '../promises/facts.ts'
import type { Promised } from '../promises/promised.ts'

const name = 'node-1'
const agent = `agent:${name}`
/** Rules about minutes look every few seconds. */
const tickMs = 5_000

export type NodeWorld = {
  readonly observer: NodeObserver
  /** Tells what has changed since the last look. */
  look(): void
  /** The agent has carried out its plan; `hasChanged`: something is different for the next one. */
  roundEnds(hasChanged: boolean): void
  agentRestarts(): void
  runRequested(skyhook: string, name: string): void
  /** How often each promise had something to judge. */
  checks(): ReadonlyMap<string, number>
}

type Kind = 'nodes' | 'skyhooks' | 'pods' | 'leases'

/** `violate` hears what breaks a promise. */
export function watchNode(
  node: NodeSimulator,
  promises: readonly Promised[],
  violate: (message: string) => void,
): NodeWorld {
  const tables = new Map<string, Table>()
  const host: Host = {
    name,
    nodeName: () => name,
    host: { power: () => 'up', bootId: () => node.bootId },
    agents: () => [node],
    reachesApi: () => !isHeldUp,
    isFaulty: () => isHeldUp,
    isHalted: () => false,
    defaultBudgets: () => [],
  }
  const world: World = {
    clock: { monotonicMs: () => nowMs },
    server: {
      isAway: () => false,
      object: (plural, _, key) => tableOf(plural).objects.get(key)?.object,
      objects: (plural) => {
        const table = tableOf(plural)
        return (table.list ??= [...table.objects.values()].map(({ object }) => object))
      },
    },
    hosts: new Map([[name, host]]),
    // slots are granted and denied as a test arranges it: no budget says when
    plan: { skyhooks: [], defaultBudget: { count: 1 } },
    slackMs: 0,
    maxRequests: { inFirstMinute: Infinity, perMinute: Infinity },
  }
  const judges = promises.map((promise) => ({ name: promise.name, ...promise.watch(world, violate) }))
  const running = new Map<string, HostStep>()
  /** Slots that the agent gives back. */
  const released = new Set<string>()
  let nowMs = node.nowMs
  let tickedMs = nowMs
  /** The agent would do something now, and is not let; or it cannot know what there is. */
  let isHeldUp = false
  /** The last decision changed nothing, and nothing has happened since. */
  let isSettled = false
  let isAgentWriting = false
  let isShutDown = false
  let seenPods: readonly Pod[] = []
  let seenSlots: readonly OwnSlot[] = []
  let seenLosses = 0

  function tableOf(plural: string): Table {
    const table = tables.get(plural) ?? { objects: new Map<string, Seen>(), list: undefined }
    tables.set(plural, table)
    return table
  }

  function tell(fact: Fact): void {
    isSettled = false
    for (const judge of judges) judge.on?.(fact, nowMs)
  }

  const tellHost = (event: HostEvent): void => tell({ kind: 'host', host: name, event })

  /** `source`: of which the object was made; the same one is the same version. */
  function commit(kind: Kind, key: string, client: string, source?: object, object?: SimObject): void {
    const table = tableOf(kind)
    const before = table.objects.get(key)
    if (source === undefined || object === undefined) table.objects.delete(key)
    else table.objects.set(key, { source, object })
    table.list = undefined
    const type: EventType = object === undefined ? 'DELETED' : before === undefined ? 'ADDED' : 'MODIFIED'
    const version = versionOf(key, (object ?? before?.object) as SimObject)
    const previous = before && versionOf(key, before.object)
    const resource = resources.get(kind)
    if (resource === undefined) throw new Error(`no resource ${kind}`)
    tell({ kind: 'commit', client, change: { type, resource, revision: 0, version, previous, atMs: nowMs } })
  }

  function lookAtNode(): void {
    const seen = tableOf('nodes').objects.get(name)?.source as KubernetesNode | undefined
    if (seen === node.node) return
    const isSame = seen?.metadata.uid === node.node.metadata.uid
    if (seen !== undefined && !isSame) commit('nodes', name, 'admin')
    commit('nodes', name, clientOfNode(seen, isSame), node.node, node.node as unknown as SimObject)
  }

  const clientOfNode = (seen: KubernetesNode | undefined, isSame: boolean): string => {
    if (isAgentWriting) return agent
    return isSame && seen?.status === node.node.status ? 'admin' : `kubelet:${name}`
  }

  function lookAtSkyhooks(): void {
    const { objects } = tableOf('skyhooks')
    for (const key of objects.keys()) if (!node.views.has(key)) commit('skyhooks', key, 'admin')
    for (const [key, view] of node.views) {
      const seen = objects.get(key)?.source as SkyhookView | undefined
      // one that cannot be read yet shows nothing new
      if (seen?.metadata === view.metadata && seen.spec === view.spec) continue
      if (seen !== undefined && seen.metadata.uid !== view.metadata.uid) commit('skyhooks', key, 'admin')
      const { metadata, spec } = view
      commit('skyhooks', key, 'admin', view, { ...skyhookTypeMeta, metadata, spec } as unknown as SimObject)
    }
  }

  function lookAtPods(): void {
    if (seenPods === node.pods) return
    seenPods = node.pods
    const { objects } = tableOf('pods')
    const now = new Map(node.pods.map((pod) => [pod.metadata.uid, pod]))
    for (const uid of objects.keys()) if (!now.has(uid)) commit('pods', uid, 'workload')
    for (const [uid, pod] of now) {
      if (objects.get(uid)?.source === pod) continue
      const client = pod.metadata.deletionTimestamp === undefined ? 'workload' : agent
      commit('pods', uid, client, pod, { ...pod, spec: { ...pod.spec, nodeName: name } } as unknown as SimObject)
    }
  }

  function lookAtSlots(): void {
    if (seenSlots === node.slots && seenLosses === node.lostLeases.size) return
    seenSlots = node.slots
    seenLosses = node.lostLeases.size
    const { objects } = tableOf('leases')
    const now = new Map(node.slots.filter(({ uid }) => !node.lostLeases.has(uid)).map((slot) => [slot.uid, slot]))
    for (const uid of objects.keys()) {
      if (now.has(uid)) continue
      commit('leases', uid, released.has(uid) ? agent : 'admin')
    }
    for (const [uid, slot] of now) {
      const seen = objects.get(uid)
      const last = seen?.source as OwnSlot | undefined
      const isWritten = slot !== last && slot.ownership !== 'seen'
      if (last === undefined || isWritten) {
        const object = last?.phase === slot.phase ? seen?.object : leaseOf(slot)
        commit('leases', uid, isWritten ? agent : 'admin', slot, object)
      }
      if (slot.ownership !== 'confirmed' || last?.admittedUnder === slot.admittedUnder) continue
      tell(answered({ verb: 'get', resource: 'skyhooks', name: slot.skyhook }))
    }
  }

  /** The budget's arithmetic is not here: a slot has the index 0 or none. */
  function leaseOf({ scope, skyhook, skyhookUid = '', phase, uid, lease, isBootstrap }: OwnSlot): SimObject {
    const identity = { name: skyhook, uid: skyhookUid }
    const ofSkyhook = isBootstrap === true ? bootstrapScope(identity) : skyhookScope(identity)
    const target: SlotTarget = lease.endsWith('-0') ? { index: 0 } : { kind: 'recovery' }
    const holder = { name, uid: node.node.metadata.uid, bootId: node.bootId }
    const progress = { phase, generation: 0, packages: [] }
    const made = newLease(scope === 'skyhook' ? ofSkyhook : controlPlaneScope, target, holder, progress, nowMs)
    return { ...made, metadata: { ...made.metadata, uid } } as unknown as SimObject
  }

  const answered = (request: Pick<AuditEntry, 'verb' | 'resource' | 'name'>): Fact => {
    const entry = { ...request, atMs: nowMs, client: agent, namespace: '', query: {}, code: 200, isCommitted: false }
    return { kind: 'answered', entry }
  }

  /** Rules that give an agent time count only what passes while it waits for something, and knows what there is. */
  function tick(): void {
    if (tickedMs + tickMs > node.nowMs) return
    const requeueAtMs = node.lastPlan?.requeueAtMs ?? 0
    const isUnderWay = running.size > 0 || node.interrupting.size > 0 || node.terminatingPods.size > 0
    const isUnknown = node.areSkyhooksInDoubt || [...node.views.values()].some(({ stale }) => stale)
    isHeldUp = !isSettled || isUnderWay || isUnknown || node.nowMs > requeueAtMs + 1
    for (; tickedMs + tickMs <= node.nowMs; tickedMs += tickMs) {
      nowMs = tickedMs + tickMs
      for (const judge of judges) judge.tick?.(nowMs)
    }
    isHeldUp = false
  }

  function look(): void {
    tick()
    nowMs = node.nowMs
    lookAtNode()
    isAgentWriting = false
    lookAtSkyhooks()
    lookAtPods()
    lookAtSlots()
  }

  const observer: NodeObserver = {
    decided() {
      look()
      tellHost({ event: 'effect', process: 1, name: 'fsync:journal' })
    },
    published() {
      look()
      isAgentWriting = true
    },
    slotReleased({ uid }) {
      look()
      released.add(uid)
    },
    stepStarts(action) {
      look()
      const step = stepOf(action, nowMs)
      running.set(step.unit, step)
      tellHost({ event: 'stepStarted', step })
    },
    stepEnds({ attempt }, succeeded) {
      look()
      end(attempt.id, { outcome: 'exited', code: succeeded ? 0 : 1 })
    },
    interruptStarts({ interrupt: { type, services = ['all'] } }) {
      look()
      tell(answered({ verb: 'list', resource: 'pods', name: '' }))
      if (type === 'reboot') {
        tellHost({ event: 'rebootRequested', answer: 'accepted', isLost: false })
        tellHost({ event: 'shutdownStarted', bootId: node.bootId })
      } else if (type !== 'noop') for (const unit of services) tellHost({ event: 'restartRequested', unit })
    },
    interruptEnds({ interrupt, id }: InterruptRun) {
      look()
      const { type, services = ['all'] } = interrupt
      if (type === 'reboot') isShutDown = node.requestedInterrupts.has(id) && !node.interrupting.has(id)
      else if (type !== 'noop') for (const unit of services) tellHost({ event: 'restartEnded', unit, result: 'done' })
    },
    booted() {
      look()
      tellHost({ event: 'wentDown', bootId: '', how: isShutDown ? 'shutdown' : 'power cut' })
      isShutDown = false
      for (const step of running.values()) tellHost({ event: 'stepLost', step })
      running.clear()
      tellHost({ event: 'booted', bootId: node.bootId })
    },
  }

  function end(id: string, how: StepEnd): void {
    const step = running.get(id)
    if (step === undefined) return
    running.delete(id)
    tellHost({ event: 'stepEnded', step, end: how, isRecorded: true })
  }

  look()
  return {
    observer,
    look,
    roundEnds(hasChanged) {
      look()
      for (const id of running.keys())
        if (node.attempts.get(id)?.state !== 'running') end(id, { outcome: 'killed', signal: 'TERM' })
      isSettled = !hasChanged && !node.lastPlan?.actions.some(({ do: what }) => what === 'publish')
    },
    agentRestarts() {
      look()
      tellHost({ event: 'agentEnded', process: 1, kind: 'agent' })
    },
    runRequested: (skyhook, name) => tellHost({ event: 'runRequested', skyhook, package: name }),
    checks: () => new Map(judges.map((judge) => [judge.name, judge.checks()])),
  }
}

type Seen = { readonly source: object; readonly object: SimObject }
type Table = { readonly objects: Map<string, Seen>; list: readonly SimObject[] | undefined }

const versionOf = (key: string, object: SimObject): Version => ({
  key,
  revision: 0,
  object,
  cordonManager: undefined,
  made: { lines: new Map() },
})

const stepOf = ({ view, record, attempt: { id, mode, path } }: StartStep, startedAtMs: number): HostStep => ({
  unit: id,
  attempt: id,
  invocationId: id,
  skyhook: view.metadata.name,
  skyhookUid: view.metadata.uid,
  generation: record.work.generation,
  package: record.name,
  version: record.version,
  mode,
  path,
  startedAtMs,
})
