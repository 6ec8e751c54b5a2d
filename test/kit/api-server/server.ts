/**
 * An API server in this process, on virtual time and without any I/O: Kubernetes' semantics for the resources that
 * skyhookd uses, checked against a real kube-apiserver by test/cluster/api-semantics.test.ts, and faults on demand.
 *
 * Everything takes effect at once and in order. What goes out is immutable and shared by all clients.
 */
import type { Clock, Random } from '../../../src/schemas/clock.ts'
import { auditEntry, type AuditEntry } from './audit.ts'
import { groupAnswer, type OtherGroup } from './discovery.ts'
import { evictPod } from './eviction.ts'
import { createFaultPlan, type Fault, type FaultPlan } from './faults.ts'
import { type Answer, Refusal } from './refusals.ts'
import { createLists, readObject } from './reads.ts'
import { keyOf, type Location, resourceNamed } from './resources.ts'
import { formOf, routedRequest, type RoutedRequest, type SimRequest } from './request.ts'
import { type Backup, type Change, createStore, rehearsedStore } from './store.ts'
import type { Schemas } from './strategies.ts'
import { createStream, type SimStream } from './stream.ts'
import { objectIn, type SimObject, type Version } from './versions.ts'
import { createWatches, type Watch } from './watches.ts'
import { createObject, deleteObject, patchObject, replaceObject, type Target } from './writes.ts'

export type Observer = {
  /** After each change of an object; `client` is who asked for it. */
  readonly committed?: (change: Change, client: string) => void
  readonly answered?: (entry: AuditEntry) => void
  /** The store is an older copy now. */
  readonly restored?: () => void
}

/** Throws a Refusal for what an admission policy forbids. */
export type AdmissionRule = (object: SimObject, previous: SimObject | undefined, location: Location) => void

export type SimulatedApiServer = {
  readonly faults: FaultPlan
  readonly admission: AdmissionRule[]
  /** Groups of others that are served besides. */
  readonly otherGroups: OtherGroup[]
  /** What has reached the server, oldest first; empty it as you like. */
  readonly audit: AuditEntry[]
  observe(observer: Observer): () => void
  /** Current objects of a resource, by its plural; the same list until one of them changes. */
  objects(plural: string): readonly SimObject[]
  /** The current object of that name, if there is one. */
  object(plural: string, namespace: string | undefined, name: string): SimObject | undefined
  revision(): number
  /** Ends all watches and refuses connections until `start`. */
  stop(): void
  /** With an empty cache, as after a restart, watches from before get 410; otherwise another replica has answered. */
  start(options?: { readonly hasEmptyCache?: boolean }): void
  isAway(): boolean
  /** Changes with every stop: answers from before it never arrive. */
  epoch(): number
  backUp(): Backup
  /** Puts back an older copy of the store, as an administrator does with etcd; the server restarts. */
  restore(backup: Backup, nextRevision?: number): void
  /** Forgets old versions: watches and pages from before get 410. */
  compact(): void
  /** Handles a request at once. */
  handle(request: SimRequest, fault?: Fault): Answer
  /** Opens a watch, or whatever else a client reads as a stream. */
  open(request: SimRequest, fault?: Fault): SimStream | Answer
  openWatches(): number
}

export type ApiServerOptions = {
  readonly clock: Clock
  readonly random: Random
  readonly schemas?: Schemas
  /** Changes kept per resource for watches that continue. */
  readonly historyLength?: number
}

export function createSimulatedApiServer(options: ApiServerOptions): SimulatedApiServer {
  const { clock, random, schemas = {}, historyLength = 2_000 } = options
  const observers = new Set<Observer>()
  const audit: AuditEntry[] = []
  const admission: AdmissionRule[] = []
  const otherGroups: OtherGroup[] = []
  const faults = createFaultPlan(random)
  const lists = createLists()
  let currentClient = ''
  let isAway = false
  let epoch = 0

  const store = createStore({
    clock,
    historyLength,
    onChange(change) {
      watches.dispatch(change)
      for (const { committed } of observers) committed?.(change, currentClient)
    },
  })
  const watches = createWatches(store, clock, random)
  const writes = {
    store,
    clock,
    random,
    schemas,
    admit: (object: SimObject, previous: SimObject | undefined, location: Location): void => {
      for (const rule of admission) rule(object, previous, location)
    },
  }
  for (const name of ['default', 'kube-system']) {
    const location = { resource: resourceNamed('namespaces'), namespace: '', name: undefined, subresource: undefined }
    createObject(writes, location, { metadata: { name } })
  }

  const answerTo = (request: RoutedRequest, location: Location, fault: Fault | undefined): Answer => {
    const { method, body, contentType = 'application/json', manager, query } = request
    const context = query['dryRun'] === 'All' ? { ...writes, store: rehearsedStore(store) } : writes
    const { name, subresource } = location
    const form = formOf(request)
    const ok = (version: Version, code = 200): Answer => ({ code, body: objectIn(version, form) })
    const reads = { store, clock, lagMs: fault?.kind === 'stale' ? fault.byMs : 0 }
    if (name === undefined) {
      if (method === 'GET') return { code: 200, body: lists.list(reads, location, request) }
      if (method === 'POST') return ok(createObject(context, location, body), 201)
      throw new Error(`the simulated API server knows no ${method} of a collection`)
    }
    const target: Target = { ...location, name }
    if (subresource === 'eviction' && method === 'POST') return { code: 201, body: evictPod(context, target, body) }
    if (subresource !== undefined && !(subresource === 'status' && location.resource.hasStatus)) return pageNotFound
    switch (method) {
      case 'GET':
        return { code: 200, body: readObject(reads, target, request) }
      case 'PUT': {
        const { version, isNew } = replaceObject(context, target, body, manager)
        return ok(version, isNew ? 201 : 200)
      }
      case 'PATCH':
        return ok(patchObject(context, target, body, contentType, manager))
      case 'DELETE': {
        const uid = store.get(location.resource, keyOf(target.namespace, target.name))?.object.metadata.uid
        const version = deleteObject(context, target, body)
        return version === undefined ? { code: 200, body: successOf(target, uid) } : ok(version)
      }
      case 'POST':
        return pageNotFound
    }
  }

  const record = (request: RoutedRequest, code: number, isCommitted: boolean): void => {
    const entry = auditEntry(request, clock.wallMs(), code, isCommitted)
    audit.push(entry)
    for (const { answered } of observers) answered?.(entry)
  }

  const attempt = <T>(request: RoutedRequest, fault: Fault | undefined, act: () => T): T | Answer => {
    try {
      if (fault?.kind === 'refuse') {
        const { code, reason, message = 'refused by a fault', retryAfterSeconds } = fault
        throw new Refusal(code, message, { reason, retryAfterSeconds })
      }
      currentClient = request.client
      return act()
    } catch (error) {
      if (error instanceof Refusal) return error.answer
      throw error
    }
  }

  const restart = (): void => {
    epoch++
    for (const { stream } of watches.all()) stream.fail(new Error('read ECONNRESET'))
  }

  return {
    faults,
    admission,
    otherGroups,
    audit,
    observe(observer) {
      observers.add(observer)
      return () => void observers.delete(observer)
    },
    objects: (plural) => store.objects(resourceNamed(plural)),
    object: (plural, namespace = '', name) => store.get(resourceNamed(plural), keyOf(namespace, name))?.object,
    revision: () => store.revision(),
    stop() {
      isAway = true
      restart()
    },
    start({ hasEmptyCache = false } = {}) {
      isAway = false
      if (hasEmptyCache) store.compact()
    },
    isAway: () => isAway,
    epoch: () => epoch,
    backUp: () => store.backUp(),
    restore(backup, nextRevision) {
      store.restore(backup, nextRevision)
      lists.forget()
      restart()
      for (const { restored } of observers) restored?.()
    },
    compact: () => store.compact(),
    handle(request, fault) {
      const routed = routedRequest(request)
      const { location } = routed
      const before = store.revision()
      const answer = attempt(routed, fault, () =>
        location === undefined
          ? (groupAnswer(request.path, otherGroups) ?? pageNotFound)
          : answerTo(routed, location, fault),
      )
      const isCommitted = store.revision() > before
      const final = fault?.kind === 'fail-after-commit' && isCommitted ? failure(fault.code) : answer
      record(routed, final.code, isCommitted)
      return final
    },
    open(request, fault) {
      const routed = routedRequest(request)
      const { location } = routed
      if (request.path === '/readyz' && fault?.kind !== 'refuse') return readiness()
      const opened = attempt(routed, fault, () => {
        if (location === undefined) return pageNotFound
        return watches.open(location, request, fault?.kind === 'slow-watch' ? fault.byMs : 0)
      })
      record(routed, 'stream' in opened ? 200 : opened.code, false)
      if (!('stream' in opened)) return opened
      endByFault(opened, fault)
      return opened.stream
    },
    openWatches: () => watches.all().length,
  }

  function endByFault(watch: Watch, fault: Fault | undefined): void {
    const { stream } = watch
    if (fault?.kind === 'expire-watch') {
      clock.startTimer(fault.afterMs, () => watches.expire(watch), { isBackground: true })
    } else if (fault?.kind === 'cut-watch') {
      const cut = (): void => {
        if (fault.how === 'tear') stream.write(Buffer.from('{"type":"MODIFIED","obj'))
        if (fault.how === 'break') stream.fail(new Error('read ECONNRESET'))
        else stream.end()
      }
      clock.startTimer(fault.afterMs, cut, { isBackground: true })
    }
  }
}

const pageNotFound: Answer = { code: 404, body: '404 page not found\n' }
const failure = (code: number): Answer => new Refusal(code, 'failed after the commit, by a fault').answer

const successOf = ({ resource: { group, plural }, name }: Target, uid: string | undefined): unknown => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  details: { name, ...(group !== '' && { group }), kind: plural, uid },
})

function readiness(): SimStream {
  const stream = createStream()
  stream.write(Buffer.from('ok'))
  stream.end()
  return stream
}
