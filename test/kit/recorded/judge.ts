/**
 * A campaign on real hosts, told again as facts: what was recorded of the API server, and what the scripts of packages
 * wrote on the hosts' disks. What no record shows, such as the life of an agent's process, is not there: a fault of the
 * host excuses what it may cause.
 */
import type { AuditedRequest } from './audit.ts'
import type { Evidence, Finding, RecordedFault, Violation } from './evidence.ts'
import type { StepLine } from './step-lines.ts'
import { readSlot } from '../../../src/lease/slot.ts'
import { keyOf, type Version } from '../cluster/moments.ts'
import { resources } from '../api-server/resources.ts'
import { createVersion, type SimObject } from '../api-server/versions.ts'
import type { HostEvent, HostStep } from '../host/observer.ts'
import type { Fact, Host, World } from '../../promises/facts.ts'
import type { Promised } from '../../promises/promised.ts'
import { commitsOf, slackMs } from './commits.ts'

/** A step that was killed writes no end; none of ours takes longer. */
const maxStepMs = 5_000
/** From the announcement of a reboot, or its fault, until the Node shows the new boot. */
const maxBootMs = 150_000
/** Agents are back and know what they missed so long after an action. */
const recoveryMs = 10_000
/** Twice what the busiest minute took of an agent that was elected for the census. */
const maxRequestsPerMinute = 400
const tickMs = 1_000

/** At that time the view changes, if there is one, and then this is told. */
type Told = { readonly atMs: number; readonly fact: Fact; readonly version?: Version }

/** Of each promise, in their order. */
export function judgeRecord(evidence: Evidence, promises: readonly Promised[]): readonly Finding[] {
  const told = factsOf(evidence)
  const replay = openReplay(evidence, told[0]?.atMs ?? evidence.endedMs)
  const judges = promises.map(({ name, watch }) => {
    const violations = new Map<string, Violation>()
    const violate = (text: string, atMs = replay.nowMs()): void => {
      if (!violations.has(text)) violations.set(text, { text, atMs })
    }
    return { name, judge: watch(replay.world, violate), violations }
  })
  let nextTickMs = replay.nowMs() + tickMs
  const tickUntil = (atMs: number): void => {
    for (; nextTickMs <= atMs; nextTickMs += tickMs) {
      replay.setNow(nextTickMs)
      for (const { judge } of judges) judge.tick?.(nextTickMs)
    }
    replay.setNow(atMs)
  }
  for (const one of told) {
    tickUntil(one.atMs)
    replay.apply(one)
    for (const { judge } of judges) judge.on?.(one.fact, replay.nowMs())
  }
  tickUntil(evidence.endedMs)
  return judges.map(({ name, judge, violations }) => {
    void judge.end?.(replay.nowMs())
    return { name, checked: judge.checks(), violations: [...violations.values()] }
  })
}

/** Its clock is that of the machine. */
function openReplay(evidence: Evidence, startMs: number) {
  const tables = new Map<string, { readonly objects: Map<string, SimObject>; list: readonly SimObject[] | undefined }>()
  const tableOf = (plural: string) => {
    const table = tables.get(plural) ?? { objects: new Map<string, SimObject>(), list: undefined }
    tables.set(plural, table)
    return table
  }
  const down = new Set<string>()
  let nowMs = startMs
  const isHit = (node: string): boolean =>
    evidence.faults.some(
      (fault) => isOf(fault, node) && fault.startedMs <= nowMs && nowMs <= fault.endedMs + recoveryMs,
    )
  const hosts = [...evidence.steps.keys()].map((name): Host => {
    const bootId = (): string => {
      const node = tableOf('nodes').objects.get(name) as { status?: { nodeInfo?: { bootID?: string } } } | undefined
      return node?.status?.nodeInfo?.bootID ?? ''
    }
    return {
      name,
      nodeName: () => name,
      host: { power: () => (down.has(name) ? 'down' : 'up'), bootId },
      agents: () => oneAgent,
      reachesApi: () => true,
      isFaulty: () => isHit(name),
      isHalted: () => false,
      defaultBudgets: () => [],
    }
  })
  const world: World = {
    clock: { monotonicMs: () => nowMs },
    server: {
      isAway: () => false,
      object: (plural, namespace, name) =>
        tableOf(plural).objects.get(plural === 'pods' ? `${namespace}/${name}` : name),
      objects: (plural) => {
        const table = tableOf(plural)
        table.list ??= [...table.objects.values()]
        return table.list
      },
    },
    hosts: new Map(hosts.map((host) => [host.name, host])),
    plan: { skyhooks: evidence.skyhooks.map((name) => ({ name, spec: {} })) },
    slackMs,
    maxRequests: { inFirstMinute: maxRequestsPerMinute, perMinute: maxRequestsPerMinute },
  }
  return {
    world,
    nowMs: () => nowMs,
    setNow: (atMs: number) => void (nowMs = atMs),
    apply({ fact, version }: Told): void {
      if (fact.kind === 'host' && fact.event.event === 'wentDown') down.add(fact.host)
      if (fact.kind === 'host' && fact.event.event === 'booted') down.delete(fact.host)
      if (version === undefined) return
      const table = tableOf(version.kind)
      table.list = undefined
      if (version.type === 'DELETED') table.objects.delete(keyOf(version))
      else table.objects.set(keyOf(version), version.object as unknown as SimObject)
    },
  }
}

const oneAgent = [{}]

const isOf = (fault: RecordedFault, node: string): boolean => (fault.node ?? node) === node

/** Faults by which this host went down. */
const cutsOf = ({ faults }: Evidence, host: string): readonly RecordedFault[] =>
  faults.filter((fault) => fault.down !== undefined && fault.node === host)

function factsOf(evidence: Evidence): readonly Told[] {
  const told: Told[] = commitsOf(evidence).map(({ atMs, client, version, previous }) => {
    const resource = resources.get(version.kind)
    if (resource === undefined) throw new Error(`no resource ${version.kind}`)
    const { type, resourceVersion: revision } = version
    const versionOf = (object: Version['object']) =>
      createVersion(keyOf(version), object as unknown as SimObject, revision, undefined)
    const change = { type, resource, revision, version: versionOf(version.object), atMs }
    return {
      atMs,
      version,
      fact: { kind: 'commit', client, change: { ...change, previous: previous && versionOf(previous) } },
    }
  })
  for (const request of evidence.audit) told.push({ atMs: request.answeredMs, fact: answered(request) })
  for (const [host, lines] of evidence.steps)
    for (const [atMs, event] of [...stepEvents(evidence, host, lines), ...bootEvents(evidence, host)])
      told.push({ atMs, fact: { kind: 'host', host, event } })
  return told.toSorted((a, b) => a.atMs - b.atMs)
}

function answered({ node, resource, subresource, uri, receivedMs, status, ...request }: AuditedRequest): Fact {
  const { verb, namespace = '', name = '' } = request
  const entry = {
    atMs: receivedMs,
    client: `agent:${node}`,
    verb: verb as 'get',
    resource: subresource === undefined ? resource : `${resource}/${subresource}`,
    namespace,
    name,
    query: Object.fromEntries(new URL(uri, 'https://kubernetes').searchParams),
    code: status,
    isCommitted: status < 300 && !['get', 'list', 'watch'].includes(verb),
  }
  return { kind: 'answered', entry }
}

type Dated = readonly [atMs: number, event: HostEvent]

/** What a script that was killed left open ends with its host, or with the next one of its package. */
function stepEvents({ faults }: Evidence, host: string, lines: readonly StepLine[]): readonly Dated[] {
  const events: Dated[] = []
  const open = new Map<string, HostStep>()
  const unrecorded = faults.filter((fault) => isOf(fault, host) && (fault.down !== undefined || fault.isDiskFull))
  const lose = (key: string, atMs: number): void => {
    const step = open.get(key)
    if (step === undefined || !open.delete(key)) return
    events.push([Math.min(atMs, step.startedAtMs + maxStepMs), { event: 'stepLost', step }])
  }
  for (const { atMs, skyhook, package: name, version, mode, round, what } of lines) {
    if (name === 'service') {
      events.push([atMs, { event: 'restartRequested', unit: name }])
      events.push([atMs, { event: 'restartEnded', unit: name, result: 'done' }])
      continue
    }
    const key = `${skyhook}/${name}`
    if (what === 'begins') {
      lose(key, atMs)
      const id = `${host} ${key} ${atMs}`
      const path = `edit ${round}`
      const names = { unit: id, attempt: '1', invocationId: id, skyhook, package: name, version, path }
      const step = { ...names, mode: mode.replaceAll('_', '-'), startedAtMs: atMs }
      open.set(key, step)
      events.push([atMs, { event: 'stepStarted', step }])
    } else {
      const step = open.get(key)
      if (step === undefined || !open.delete(key)) continue
      // a script may end before anything can be written of it
      const isRecorded = !unrecorded.some(({ startedMs, endedMs }) => startedMs - slackMs < atMs && atMs < endedMs)
      events.push([atMs, { event: 'stepEnded', step, end: { outcome: 'exited', code: 0 }, isRecorded }])
    }
  }
  for (const key of open.keys()) lose(key, Infinity)
  return events
}

/** A boot that no fault made was asked for, when a slot said so, or by whoever knows why. */
function bootEvents(evidence: Evidence, host: string): readonly Dated[] {
  const events: Dated[] = []
  let bootId: string | undefined
  let announcedMs = -Infinity
  const cuts = cutsOf(evidence, host)
  for (const { down = 'shutdown', startedMs } of cuts)
    events.push([startedMs, { event: 'wentDown', bootId: '', how: down }])
  for (const { change } of evidence.moments) {
    const { kind, type, object, atMs } = change
    if (kind === 'leases' && type !== 'DELETED') {
      const slot = readSlot(object)
      if (slot?.holder === host && slot.phase === 'rebooting' && announcedMs === -Infinity) announcedMs = atMs
    }
    const next = kind === 'nodes' && object.metadata.name === host ? object.status?.nodeInfo?.bootID : undefined
    if (next === undefined || next === '' || next === bootId) continue
    const isFirst = bootId === undefined
    const former = bootId ?? ''
    bootId = next
    if (isFirst) continue
    const isOfFault = cuts.some(({ startedMs, endedMs }) => startedMs <= atMs && atMs - endedMs < maxBootMs)
    if (!isOfFault) {
      const askedMs = atMs - announcedMs < maxBootMs ? announcedMs : atMs
      events.push([askedMs, { event: 'rebootRequested', answer: 'accepted', isLost: false }])
      events.push([askedMs, { event: 'wentDown', bootId: former, how: 'shutdown' }])
    }
    announcedMs = -Infinity
    events.push([atMs, { event: 'booted', bootId: next }])
  }
  return events
}
