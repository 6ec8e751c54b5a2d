/**
 * No node is admitted while the number of disrupted nodes is at or above the budget in force at that admission. The
 * admission is the confirming read: the last consistent GET of the Skyhook before the host went out, with the LIST of
 * slots that followed it. Hosts and cordon marks say who is out, the spec who soaks afterwards. Nodes that join the
 * cluster count among themselves, and the nodes of each compartment of a policy among themselves.
 */
import { labelKeys } from '../../../src/lease/names.ts'
import { readSlot, type Lease } from '../../../src/lease/slot.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import { hasRequiredTaint } from '../../../src/stages/drain/node-spec.ts'
import type { FleetEvent } from '../run/world-view.ts'
import { requiredTaint } from '../run/fleet-host.ts'
import { findExcess, type Excess, type Outing, type Reading } from './admissions.ts'
import {
  allowedJoining,
  allowedNow,
  compartmentsOf,
  hostOfClient,
  isFormer,
  isJoining,
  isSlotOf,
  nodeOf,
  skyhookOf,
  slotsOf,
} from './cluster.ts'
import type { OutChange } from './disruption.ts'
import { evidenceOf } from './evidence.ts'
import { followExemptions, type Exemptions } from './exemptions.ts'
import type { Invariant } from './invariant.ts'

/** What is known of one Skyhook on one host. */
type Side = {
  /** Since the slot was taken. */
  readings: Reading[]
  /**
   * What was known before a slot that the host had not given back was created again: a request for it was carried out
   * late. Started work goes on under a recovery slot, and by this.
   */
  beforeLateSlot: Pick<Side, 'readings' | 'hasKeptSlot'> | undefined
  /** As the last GET answered it. */
  lastGet: Skyhook | undefined
  /** When the host listed the slots last. */
  listOrder: number
  current: Outing | undefined
  /** It still has the slot of its last outing: a pause between two packages is part of it. */
  hasKeptSlot: boolean
  /** Of the slot that it took last. */
  compartment: string | undefined
  /** The slot that it took last is a recovery slot: it counts with nodes in service, also on a node that joins. */
  hasRecovered: boolean
}

type Scope = {
  readonly sides: Map<string, Side>
  readonly outings: Outing[]
  readonly exemptions: Exemptions
  /** By host: it is done and keeps its slot because of `spec.pace`. */
  readonly soaking: Map<string, Outing>
}

export const budget: Invariant = {
  name: 'budget',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    const scopes = new Map<string, Scope>()
    let checks = 0

    const scopeOf = (skyhook: string): Scope => {
      let scope = scopes.get(skyhook)
      if (scope === undefined) {
        const exemptions = followExemptions(world, evidence, (slot) => isSlotOf(slot, skyhook))
        scope = { sides: new Map(), outings: [], exemptions, soaking: new Map() }
        scopes.set(skyhook, scope)
      }
      return scope
    }
    for (const { name } of world.plan.skyhooks) scopeOf(name)

    const sideOf = ({ sides }: Scope, host: string): Side => {
      const side = sides.get(host) ?? {
        readings: [],
        beforeLateSlot: undefined,
        lastGet: undefined,
        listOrder: Infinity,
        current: undefined,
        hasKeptSlot: false,
        compartment: undefined,
        hasRecovered: false,
      }
      sides.set(host, side)
      return side
    }

    const judge = (scope: Scope, skyhook: string): void => {
      checks++
      const excess = findExcess(scope.outings, scope.exemptions.all)
      if (excess) violate(describe(excess, skyhook))
    }

    function goOut(scope: Scope, { host, skyhook, cause }: OutChange): void {
      const side = sideOf(scope, host)
      const isUnasked = cause === 'etcd restored'
      const { current } = side
      if (current !== undefined && side.hasKeptSlot) {
        if (current.isJoining === true && side.hasRecovered) countFromNow(scope, side, host)
        else current.endOrder = Infinity
      } else {
        const isExempt = scope.exemptions.all.some((one) => one.host === host && one.untilOrder === Infinity)
        if (side.readings.length === 0 && !isUnasked && !isExempt)
          return violate(`${host} goes out for ${skyhook} (${cause}) without a confirming read`)
        const readings = isUnasked ? [] : side.readings
        // the agent may have seen its pods some time before: counted where every read agrees
        const isOfJoining = readings.length > 0 && readings.every((reading) => reading.isJoining === true)
        side.current = {
          host,
          compartment: side.compartment,
          startOrder: evidence.order(),
          endOrder: Infinity,
          readings,
          isJoining: isOfJoining,
        }
        scope.outings.push(side.current)
        if (side.hasRecovered) countAsOthers(scope, side) // it lost its taint between its admission and its cordon
      }
      side.hasKeptSlot = true
      side.readings = []
      side.beforeLateSlot = undefined
      judge(scope, skyhook)
    }

    evidence.disruption.onChange((change) => {
      const scope = scopeOf(change.skyhook)
      if (change.isOut) goOut(scope, change)
      else {
        const { current } = sideOf(scope, change.host)
        if (current === undefined) return
        if (current.isJoining !== true && evidence.soaks.untilMs(change.host, change.skyhook) !== undefined)
          scope.soaking.set(change.host, current)
        else current.endOrder = evidence.order()
      }
    })

    return {
      on(event, atMs) {
        evidence.see(event)
        for (const [skyhook, scope] of scopes) {
          scope.exemptions.see(event)
          endSoaks(scope, skyhook, atMs)
        }
        seeTaint(event)
        if (event.kind === 'answered') seeRead(event, atMs)
        else if (event.kind === 'commit' && event.change.resource.plural === 'leases') seeSlot(event)
      },
      tick(atMs) {
        evidence.tick(atMs)
        for (const { exemptions } of scopes.values()) exemptions.tick()
      },
      checks: () => checks,
    }

    function endSoaks({ soaking, sides }: Scope, skyhook: string, atMs: number): void {
      for (const [host, outing] of soaking) {
        if ((evidence.soaks.untilMs(host, skyhook) ?? 0) > atMs) continue
        soaking.delete(host)
        const isOutAgain = sides.get(host)?.current === outing && evidence.disruption.isOut(host, skyhook)
        if (!isOutAgain) outing.endOrder = evidence.order()
      }
    }

    function seeRead({ entry }: Extract<FleetEvent, { kind: 'answered' }>, atMs: number): void {
      const host = hostOfClient(entry.client, 'agent')
      if (host === undefined || entry.code !== 200 || entry.query['resourceVersion'] !== undefined) return
      const order = evidence.order()
      if (entry.verb === 'get' && entry.resource === 'skyhooks') {
        const skyhook = skyhookOf(world, entry.name)
        const side = sideOf(scopeOf(entry.name), host)
        side.lastGet = skyhook
        addReading(host, side, Math.min(order, side.listOrder), atMs)
      } else if (entry.verb === 'get' && entry.resource === 'deploymentpolicies') {
        for (const scope of scopes.values()) {
          const side = sideOf(scope, host)
          if (side.lastGet?.spec.deploymentPolicy === entry.name) addReading(host, side, order, atMs)
        }
      } else if (entry.verb === 'list' && entry.resource === 'leases') {
        const name = skyhookIn(entry.query['labelSelector'])
        const scope = name === undefined ? undefined : scopes.get(name)
        if (scope === undefined) return
        const side = sideOf(scope, host)
        side.listOrder = order
        addReading(host, side, order, atMs)
      }
    }

    function addReading(host: string, side: Side, listOrder: number, atMs: number): void {
      const view = world.hosts.get(host)
      const { lastGet: skyhook } = side
      if (view === undefined || skyhook === undefined) return
      const isOfJoining = isJoining(world, view, skyhook)
      const { compartment } = side
      const allowed = (isOfJoining ? allowedJoining : allowedNow)(world.server, skyhook, compartment)
      const siblings = compartmentsOf(world.server, skyhook).filter((name) => name !== compartment)
      side.readings.push({ order: evidence.order(), listOrder, atMs, allowed, isJoining: isOfJoining, siblings })
    }

    /** Work on a node that was joining counts from here on, as soon as its agent can have a slot that says so. */
    function seeTaint(event: FleetEvent): void {
      if (event.kind !== 'commit' || event.change.resource.plural !== 'nodes') return
      const { version, previous } = event.change
      const view = evidence.hostNamed(version.object.metadata.name)
      const before = previous?.object as KubernetesNode | undefined
      if (view === undefined || before === undefined || !hasRequiredTaint(before, requiredTaint)) return
      const node = nodeOf(world, view)
      if (node !== undefined && hasRequiredTaint(node, requiredTaint)) return
      for (const scope of scopes.values()) {
        const side = sideOf(scope, view.name)
        if (countAsOthers(scope, side)) scope.exemptions.begin(view.name)
      }
    }

    /** The host was joining when it went out, and is counted with nodes in service from now on. */
    function countAsOthers(scope: Scope, side: Side): boolean {
      const { current } = side
      if (current?.isJoining !== true || current.endOrder !== Infinity) return false
      current.endOrder = evidence.order()
      countFromNow(scope, side, current.host)
      return true
    }

    function countFromNow(scope: Scope, side: Side, host: string): void {
      const { compartment } = side
      side.current = { host, compartment, startOrder: evidence.order(), endOrder: Infinity, readings: [] }
      scope.outings.push(side.current)
    }

    /** A reading counts from the slot on, and no longer than it; for a slot of the next registration as well. */
    function seeSlot({ change, client }: Extract<FleetEvent, { kind: 'commit' }>): void {
      const host = hostOfClient(client, 'agent')
      const slot = readSlot(change.version.object as unknown as Lease)
      const skyhook = slot?.lease.metadata.labels?.[labelKeys.name]
      if (host === undefined || !slot || skyhook === undefined || !isSlotOf(slot, skyhook)) return
      const scope = scopeOf(skyhook)
      if (change.type === 'ADDED') {
        const side = sideOf(scope, host)
        side.hasRecovered = slot.kind === 'recovery'
        side.compartment = slot.compartmentName
        if (side.current?.endOrder === Infinity) side.current.compartment = slot.compartmentName
      }
      if (change.type === 'ADDED' && slot.kind === 'recovery') {
        const side = sideOf(scope, host)
        countAsOthers(scope, side)
        if (side.readings.length === 0) Object.assign(side, side.beforeLateSlot)
      }
      if (change.type === 'MODIFIED' || (change.type === 'ADDED' && slot.kind === 'recovery')) return
      const view = world.hosts.get(host)
      if (change.type === 'DELETED' && isFormer(world, slot, view)) return
      const hasOther = slotsOf(world).some(
        (one) => one.uid !== slot.uid && one.holder === view?.nodeName() && isSlotOf(one, skyhook),
      )
      if (hasOther) return
      const side = sideOf(scope, host)
      const { readings, hasKeptSlot } = side
      side.beforeLateSlot = change.type === 'ADDED' ? { readings, hasKeptSlot } : undefined
      side.readings = []
      side.lastGet = undefined
      if (!evidence.disruption.isOut(host, skyhook) || change.type === 'DELETED') side.hasKeptSlot = false
    }
  },
}

/** Of a LIST for one scope, or for that and the control plane's. */
const skyhookIn = (labelSelector = ''): string | undefined => {
  const [key, value = ''] = labelSelector.split(/=| in \(,/u)
  return key === labelKeys.name ? value.split(/[,)]/u)[0] : undefined
}

function describe({ outing, reading, others }: Excess, skyhook: string): string {
  const where = outing.compartment ? ` in compartment ${outing.compartment}` : ''
  return (
    `${outing.host} went out for ${skyhook}${where} on its read at ${reading.atMs} ms, when the budget was ` +
    `${reading.allowed} and ${others.length} others were out: ${others.join(', ')}`
  )
}
