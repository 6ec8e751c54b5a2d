/**
 * No node is admitted while the number of disrupted nodes is at or above the budget in force at that admission. The
 * admission is the confirming read: the last consistent GET of the Skyhook before the host went out, with the LIST of
 * slots that followed it. Hosts and cordon marks say who is out, the spec who soaks afterwards, the Nodes that exist
 * what a percentage is of. Nodes that join the cluster count among themselves until somebody lifts their taint: where
 * their agents do, the budget has to allow it. The nodes of each compartment of a policy count among themselves.
 */
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { findExcess, type Excess, type Outing, type Reading } from './admissions.ts'
import { type Allowed, allowedJoining, allowedOf, compartmentsIn, most } from './allowed.ts'
import { followCounts, policyOf } from './counts.ts'
import type { AdmissionFact as Fact, Excuses } from './admission-facts.ts'
import { onAdmissions } from './admission-view.ts'

type Of<K extends Fact['kind']> = Extract<Fact, { readonly kind: K }>

/** A read, and what it would allow the host as one of the nodes in service. */
type Known = Reading & { allowed: Allowed; allowedInService: Allowed }

/** What is known of one Skyhook on one host. */
type Side = {
  /** Since the slot was taken. */
  readings: Known[]
  /**
   * What was known before a slot that the host had not given back was created again: a request for it was carried out
   * late. Started work goes on under a recovery slot, and by this.
   */
  beforeLateSlot: Pick<Side, 'readings' | 'hasKeptSlot'> | undefined
  /** As the last GET answered it. */
  lastGet: Skyhook | undefined
  lastGetFromMs: number
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
  readonly excuses: Excuses
  /** By host: it is done and keeps its slot because of `spec.pace`. */
  readonly soaking: Map<string, Outing>
  /** Versions of the Skyhook, as far as a read may have seen them. */
  readonly versions: { readonly sinceMs: number; readonly skyhook: Skyhook }[]
  /** Those to which a later version may still count in favor. */
  readonly recent: { readonly reading: Known; readonly compartment: string | undefined }[]
}

export const budget = onAdmissions('budget', (world, violate) => {
  const counts = followCounts(world)
  const scopes = new Map<string, Scope>()
  /** Where times are not exact, nothing is judged before all is known. */
  const isLate = world.slackMs > 0
  let checks = 0

  const scopeOf = (skyhook: string): Scope => {
    let scope = scopes.get(skyhook)
    if (scope === undefined) {
      const excuses = world.excuses(skyhook)
      scope = { sides: new Map(), outings: [], excuses, soaking: new Map(), versions: [], recent: [] }
      scopes.set(skyhook, scope)
    }
    return scope
  }

  const sideOf = ({ sides }: Scope, host: string): Side => {
    const side = sides.get(host) ?? {
      readings: [],
      beforeLateSlot: undefined,
      lastGet: undefined,
      lastGetFromMs: 0,
      listOrder: Infinity,
      current: undefined,
      hasKeptSlot: false,
      compartment: undefined,
      hasRecovered: false,
    }
    sides.set(host, side)
    return side
  }

  const judge = (scope: Scope, skyhook: string, atMs: number): void => {
    checks++
    const excess = isLate ? undefined : findExcess(scope.outings, scope.excuses.all)
    if (excess) violate(describe(excess, skyhook), atMs)
  }

  function goOut({ host, skyhook, cause, isUnasked = false, atMs }: Of<'out'>): void {
    const scope = scopeOf(skyhook)
    const side = sideOf(scope, host)
    const { current } = side
    if (current !== undefined && side.hasKeptSlot) {
      if (current.isJoining === true && side.hasRecovered) countFromNow(scope, side, host)
      else current.endOrder = Infinity
    } else {
      if (side.readings.length === 0 && !isUnasked && !isExcused(scope, host))
        return violate(`${host} goes out for ${skyhook} (${cause}) without a confirming read`, atMs)
      const readings = isUnasked ? [] : side.readings
      // the agent may have seen its pods some time before: counted where every read agrees
      const isJoining = readings.length > 0 && readings.every((reading) => reading.isJoining === true)
      const { compartment } = side
      side.current = { host, compartment, startOrder: world.order(), endOrder: Infinity, readings, isJoining }
      scope.outings.push(side.current)
      if (side.hasRecovered) countAsOthers(scope, side) // it lost its taint between its admission and its cordon
    }
    side.hasKeptSlot = true
    side.readings = []
    side.beforeLateSlot = undefined
    judge(scope, skyhook, atMs)
  }

  function comeBack({ host, skyhook, atMs }: Of<'out'>): void {
    const scope = scopeOf(skyhook)
    const { current } = sideOf(scope, host)
    if (current === undefined) return
    if (current.isJoining !== true && world.soaksUntilMs(host, skyhook) !== undefined) scope.soaking.set(host, current)
    else current.endOrder = world.order()
    if (isLate) current.endMs = atMs
  }

  function endSoaks({ soaking, sides }: Scope, skyhook: string, atMs: number): void {
    for (const [host, outing] of soaking) {
      if ((world.soaksUntilMs(host, skyhook) ?? 0) > atMs) continue
      soaking.delete(host)
      const isOutAgain = sides.get(host)?.current === outing && world.isOut(host, skyhook)
      if (!isOutAgain) outing.endOrder = world.order()
    }
  }

  function seeRead({ host, of, name, fromMs, atMs }: Of<'read'>): void {
    if (of === 'policy') {
      for (const scope of scopes.values()) {
        const side = sideOf(scope, host)
        if (side.lastGet?.spec.deploymentPolicy === name) addReading(scope, host, { listOrder: world.order(), atMs })
      }
      return
    }
    if (of === 'slots' && !scopes.has(name)) return
    const scope = scopeOf(name)
    const side = sideOf(scope, host)
    if (of === 'skyhook') {
      side.lastGet = world.skyhook(name)
      side.lastGetFromMs = fromMs
    } else side.listOrder = world.order()
    addReading(scope, host, { listOrder: Math.min(world.order(), side.listOrder), atMs })
  }

  function addReading(scope: Scope, host: string, { listOrder, atMs }: { listOrder: number; atMs: number }): void {
    const side = sideOf(scope, host)
    const { lastGet: skyhook, compartment } = side
    const isJoining = skyhook && world.isJoining(host, skyhook.metadata.name)
    if (skyhook === undefined || isJoining === undefined) return
    const policy = policyOf(world, skyhook)
    const names = policy === undefined ? [] : compartmentsIn(policy).map(({ name }) => name)
    const reading: Known = {
      order: world.order(),
      listOrder,
      atMs,
      untilMs: atMs + world.slackMs,
      allowed: 'unknown',
      allowedInService: 'unknown',
      isJoining,
      siblings: names.filter((name) => name !== compartment),
    }
    const sinceMs = side.lastGetFromMs - world.slackMs
    const before = isLate
      ? scope.versions.filter((_, index, all) => (all[index + 1]?.sinceMs ?? Infinity) > sinceMs)
      : []
    for (const one of [skyhook, ...before.map((version) => version.skyhook)]) raise(reading, one, compartment)
    side.readings.push(reading)
    if (isLate) scope.recent.push({ reading, compartment })
  }

  /** It may have seen the Skyhook like this. */
  function raise(reading: Known, skyhook: Skyhook, compartment: string | undefined): void {
    const matched = (name?: string): number => counts.matched(skyhook, reading.atMs, name)
    const policy = policyOf(world, skyhook)
    const terms = { skyhook, policy, defaults: world.defaultBudgets(), matched }
    const inService = allowedOf(terms, compartment)
    reading.allowedInService = most([reading.allowedInService, inService])
    reading.allowed = most([
      reading.allowed,
      reading.isJoining === true ? allowedJoining(terms, compartment) : inService,
    ])
  }

  function seeSkyhook(name: string, atMs: number): void {
    const scope = scopeOf(name)
    counts.skyhookChanged(name, atMs)
    const skyhook = world.skyhook(name)
    if (skyhook === undefined || !isLate) return
    scope.versions.push({ sinceMs: atMs, skyhook })
    for (const { reading, compartment } of scope.recent)
      if (atMs <= reading.untilMs) raise(reading, skyhook, compartment)
  }

  /** Work under way on a node that joined counts with the others as soon as nothing says that it joins. */
  function seeNode({ before, after, by, atMs }: Of<'object'>): void {
    counts.nodeChanged(atMs, before, after)
    if (before === undefined || after === undefined || !world.isTainted(before) || world.isTainted(after)) return
    const host = world.hostOf(after.metadata.name)
    if (host === undefined) return
    for (const [skyhook, scope] of scopes) {
      const side = sideOf(scope, host)
      const { current } = side
      if (current?.isJoining !== true || current.endOrder !== Infinity) continue
      if (by === host && !isExcused(scope, host)) countAsAsked(scope, side, { skyhook, atMs })
      else if (countAsOthers(scope, side)) scope.excuses.begin(host)
    }
  }

  /** The agent lifts the taint itself: now there has to be a place in the budget of now or of its admission. */
  function countAsAsked(scope: Scope, side: Side, { skyhook, atMs }: { skyhook: string; atMs: number }): void {
    const { current } = side
    if (current === undefined) return
    const { host } = current
    current.endOrder = world.order()
    const asked = current.readings as readonly Known[]
    side.lastGet = world.skyhook(skyhook)
    side.readings = []
    addReading(scope, host, { listOrder: world.order(), atMs })
    const { compartment, readings: now } = side
    const allowed = most([...asked, ...now].map((one) => one.allowedInService))
    const readings = now.map((one) => ({ ...one, isJoining: false, allowed }))
    side.readings = []
    side.current = { host, compartment, startOrder: world.order(), endOrder: Infinity, readings }
    scope.outings.push(side.current)
    judge(scope, skyhook, atMs)
  }

  /** The host was joining when it went out, and is counted with nodes in service from now on. */
  function countAsOthers(scope: Scope, side: Side): boolean {
    const { current } = side
    if (current?.isJoining !== true || current.endOrder !== Infinity) return false
    current.endOrder = world.order()
    countFromNow(scope, side, current.host)
    return true
  }

  function countFromNow(scope: Scope, side: Side, host: string): void {
    const { compartment } = side
    side.current = { host, compartment, startOrder: world.order(), endOrder: Infinity, readings: [] }
    scope.outings.push(side.current)
  }

  /** A reading counts from the slot on, and no longer than it; for a slot of the next registration as well. */
  function seeSlot({ host, skyhook, change, isRecovery = false, compartment, isFormer, hasOther }: Of<'slot'>): void {
    const side = sideOf(scopeOf(skyhook), host)
    if (change === 'created') {
      side.hasRecovered = isRecovery
      side.compartment = compartment
      if (side.current?.endOrder === Infinity) side.current.compartment = compartment
      if (isRecovery) {
        countAsOthers(scopeOf(skyhook), side)
        if (side.readings.length === 0) Object.assign(side, side.beforeLateSlot)
        return
      }
    }
    if ((change === 'deleted' && isFormer === true) || hasOther === true) return
    const { readings, hasKeptSlot } = side
    side.beforeLateSlot = change === 'created' ? { readings, hasKeptSlot } : undefined
    side.readings = []
    side.lastGet = undefined
    if (!world.isOut(host, skyhook) || change === 'deleted') side.hasKeptSlot = false
  }

  function seeObject(fact: Of<'object'>): void {
    const { of, name, atMs } = fact
    if (of === 'node') return seeNode(fact)
    if (of === 'skyhook') return seeSkyhook(name, atMs)
    for (const skyhook of scopes.keys())
      if (world.skyhook(skyhook)?.spec.deploymentPolicy === name) counts.skyhookChanged(skyhook, atMs)
  }

  return {
    on(fact) {
      for (const [skyhook, scope] of scopes) endSoaks(scope, skyhook, fact.atMs)
      if (fact.kind === 'object') seeObject(fact)
      else if (fact.kind === 'read') seeRead(fact)
      else if (fact.kind === 'slot') seeSlot(fact)
      else if (fact.isOut) goOut(fact)
      else comeBack(fact)
    },
    tick(atMs) {
      for (const [skyhook, scope] of scopes) endSoaks(scope, skyhook, atMs)
    },
    end() {
      if (!isLate) return
      for (const [skyhook, { outings, excuses }] of scopes)
        for (const outing of outings) {
          const excess = findExcess([outing], excuses.all, outings)
          if (excess) violate(describe(excess, skyhook), excess.reading.atMs)
        }
    },
    checks: () => checks,
  }
})

/** It has no slot that it could be seen by, and goes on all the same. */
const isExcused = ({ excuses }: Scope, host: string): boolean =>
  excuses.all.some((one) => one.host === host && one.untilOrder === Infinity)

function describe({ outing, reading, others }: Excess, skyhook: string): string {
  const where = outing.compartment ? ` in compartment ${outing.compartment}` : ''
  return (
    `${outing.host} went out for ${skyhook}${where} on its read at ${reading.atMs} ms, when the budget was ` +
    `${reading.allowed} and ${others.length} others were out: ${others.join(', ')}`
  )
}
