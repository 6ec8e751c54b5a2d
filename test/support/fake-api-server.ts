/**
 * An API server in this process, for tests of what clients do when a real one misbehaves: plain HTTP on a loopback
 * port, the real one's rules for resourceVersions, uids, selectors, pages and watches, and faults on demand. Tests of
 * the real server's behavior are in test/cluster; this one only misbehaves.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { randomUUID } from 'node:crypto'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { staticCredentials } from './static-credentials.ts'
import { createKubeTransport, type KubeTransport, type KubeTransportOptions } from '../../src/kube/transport.ts'

export type FakeObject = {
  metadata: Record<string, unknown> & { name: string; uid: string; resourceVersion: string }
  [field: string]: unknown
}
export type FakeEvent = { type: string; object: unknown }

/** What to do with a request instead of, or after, answering it. */
export type Fault =
  | {
      readonly kind: 'status'
      readonly status: number
      readonly reason?: string
      readonly message?: string
      readonly retryAfterSeconds?: number
    }
  /** The connection ends before the request has any effect. */
  | { readonly kind: 'reset' }
  /** The request takes effect, but its answer is lost. */
  | { readonly kind: 'lose-answer' }
  /** The request is never answered. */
  | { readonly kind: 'silent' }
  | { readonly kind: 'slow'; readonly ms: number }
  /** The request is handled when the test says so. */
  | { readonly kind: 'held'; readonly until: Promise<void> }
  /** The body is cut in the middle. */
  | { readonly kind: 'cut' }
  /** For a watch: these lines are written verbatim, then the stream ends, stays open (`hold`), or is destroyed. */
  | { readonly kind: 'stream'; readonly text: string; readonly after: 'end' | 'hold' | 'destroy' }

export type RecordedRequest = {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: unknown
}

export type FakeApiServer = {
  readonly url: string
  /** A client of this server, on the machine's clock; the caller closes it. */
  connect(options?: Partial<KubeTransportOptions>): KubeTransport
  readonly requests: RecordedRequest[]
  /** Serves one more collection, for example `/api/v1/nodes`; others answer 404. */
  serve(collection: string): void
  unserve(collection: string): void
  put(
    collection: string,
    object: { metadata: { name: string } & Record<string, unknown> } & Record<string, unknown>,
  ): FakeObject
  remove(collection: string, name: string): void
  get(collection: string, name: string): FakeObject | undefined
  /** Injects this fault into the next matching requests; `times` defaults to 1. */
  fault(match: (request: RecordedRequest) => boolean, fault: Fault, times?: number): void
  /** Asks `answer` about every request, the latest asked first; undefined: somebody else answers. */
  answerFirst(answer: (request: RecordedRequest) => Fault | undefined): void
  /** Compacts the history: older watches and pages get 410. */
  compact(how?: 'event' | 'status'): void
  /** To every open watch but those of Events: kube-apiserver has no watch cache for them. */
  bookmark(): void
  /** Ends all open watches, cleanly or by closing their sockets. */
  endWatches(how: 'end' | 'destroy'): void
  openWatches(): number
  connections(): number
  stop(): Promise<void>
  start(): Promise<void>
}

type Watcher = {
  readonly collection: string
  readonly query: URLSearchParams
  readonly metadataOnly: boolean
  readonly response: ServerResponse
}
type Item = { collection: string; object: FakeObject }

export async function startFakeApiServer(collections: readonly string[] = []): Promise<FakeApiServer> {
  const served = new Set(collections)
  const items = new Map<string, Item>()
  const history: { collection: string; revision: number; event: FakeEvent }[] = []
  const watchers = new Set<Watcher>()
  const sockets = new Set<Socket>()
  const faults: { match: (request: RecordedRequest) => boolean; fault: Fault; times: number }[] = []
  const answers: ((request: RecordedRequest) => Fault | undefined)[] = []
  const requests: RecordedRequest[] = []
  let revision = 100
  let oldest = 0
  let goneAs: 'event' | 'status' = 'event'
  let port = 0
  let server: Server

  const publish = (collection: string, type: string, object: FakeObject): void => {
    const event = { type, object: structuredClone(object) }
    history.push({ collection, revision, event })
    for (const watcher of watchers) if (watcher.collection === collection) deliver(watcher, event)
  }
  const deliver = (watcher: Watcher, event: FakeEvent): void => {
    if (event.type !== 'BOOKMARK' && event.type !== 'ERROR' && !selects(watcher.query, event.object as FakeObject))
      return
    watcher.response.write(
      JSON.stringify(watcher.metadataOnly ? { ...event, object: metadataOf(event.object as FakeObject) } : event) +
        '\n',
    )
  }
  const write = (collection: string, object: FakeObject): FakeObject => {
    const key = `${collection}/${object.metadata.name}`
    const before = items.get(key)
    revision++
    const stored = {
      ...object,
      metadata: {
        ...object.metadata,
        uid: before?.object.metadata.uid ?? object.metadata.uid ?? randomUUID(),
        resourceVersion: String(revision),
      },
    }
    items.set(key, { collection, object: stored })
    publish(collection, before === undefined ? 'ADDED' : 'MODIFIED', stored)
    return stored
  }
  const erase = (collection: string, name: string): FakeObject | undefined => {
    const found = items.get(`${collection}/${name}`)
    if (found === undefined) return undefined
    items.delete(`${collection}/${name}`)
    revision++
    const last = { ...found.object, metadata: { ...found.object.metadata, resourceVersion: String(revision) } }
    publish(collection, 'DELETED', last)
    return last
  }

  const handle = (request: RecordedRequest, response: ServerResponse): void => {
    const { collection, name, subresource } = locate(request.path, served)
    if (collection === undefined)
      return replyError(response, 404, 'NotFound', 'the server could not find the requested resource')
    const metadataOnly = request.headers.accept?.includes('as=PartialObjectMetadata') ?? false
    const answer = (status: number, object: FakeObject): void =>
      reply(response, status, metadataOnly ? metadataOf(object) : object)
    const found = name === undefined ? undefined : items.get(`${collection}/${name}`)?.object
    const body = request.body as FakeObject
    switch (request.method) {
      case 'GET': {
        if (name !== undefined)
          return found === undefined ? replyError(response, 404, 'NotFound', `${name} not found`) : answer(200, found)
        if (request.query.get('watch') !== null) return openWatch(collection, request, metadataOnly, response)
        return list(collection, request.query, metadataOnly, response)
      }
      case 'POST': {
        if (items.has(`${collection}/${body.metadata.name}`))
          return replyError(response, 409, 'AlreadyExists', `"${body.metadata.name}" already exists`)
        return answer(
          201,
          write(collection, { ...body, metadata: { creationTimestamp: new Date().toISOString(), ...body.metadata } }),
        )
      }
      case 'PUT': {
        if (found === undefined) {
          if (body.metadata.uid)
            return replyError(response, 409, 'Conflict', 'Precondition failed: UID in precondition')
          return answer(201, write(collection, body)) // Leases allow it: a late renewal would recreate the slot
        }
        if (body.metadata.uid && body.metadata.uid !== found.metadata.uid)
          return replyError(response, 409, 'Conflict', 'Precondition failed: UID')
        if (!body.metadata.resourceVersion)
          return replyError(response, 422, 'Invalid', 'metadata.resourceVersion: must be specified for an update')
        if (body.metadata.resourceVersion !== found.metadata.resourceVersion)
          return replyError(response, 409, 'Conflict', 'the object has been modified')
        return answer(200, write(collection, body))
      }
      case 'PATCH': {
        if (found === undefined) return replyError(response, 404, 'NotFound', `${name} not found`)
        const expected = body.metadata?.resourceVersion
        if (expected && expected !== found.metadata.resourceVersion)
          return replyError(response, 409, 'Conflict', 'the object has been modified')
        return answer(200, write(collection, patched(found, body, subresource)))
      }
      case 'DELETE': {
        if (found === undefined || name === undefined) return replyError(response, 404, 'NotFound', `${name} not found`)
        const { uid, resourceVersion } =
          (request.body as { preconditions?: { uid?: string; resourceVersion?: string } } | undefined)?.preconditions ??
          {}
        const differs =
          (uid && uid !== found.metadata.uid) || (resourceVersion && resourceVersion !== found.metadata.resourceVersion)
        if (differs)
          return replyError(response, 409, 'Conflict', 'the UID or ResourceVersion in the precondition does not match')
        return answer(200, erase(collection, name) ?? found)
      }
      default:
        return replyError(response, 405, 'MethodNotAllowed', request.method)
    }
  }

  const list = (collection: string, query: URLSearchParams, metadataOnly: boolean, response: ServerResponse): void => {
    const all = [...items.values()]
      .filter((item) => item.collection === collection && selects(query, item.object))
      .map((item) => item.object)
    const [from, at] = (query.get('continue') ?? `0 ${revision}`).split(' ').map(Number) as [number, number]
    if (at < oldest) return replyError(response, 410, 'Expired', 'The provided continue parameter is too old')
    const limit = Number(query.get('limit') ?? all.length)
    const page = all.slice(from, from + limit)
    const rest = from + limit < all.length && limit > 0 ? `${from + limit} ${at}` : undefined
    reply(response, 200, {
      kind: 'List',
      metadata: { resourceVersion: String(revision), ...(rest === undefined ? {} : { continue: rest }) },
      items: metadataOnly ? page.map(metadataOf) : page,
    })
  }

  const openWatch = (
    collection: string,
    { query }: RecordedRequest,
    metadataOnly: boolean,
    response: ServerResponse,
  ): void => {
    const from = Number(query.get('resourceVersion'))
    const gone = {
      kind: 'Status',
      code: 410,
      reason: 'Expired',
      message: `too old resource version: ${from} (${oldest})`,
    }
    if (from < oldest && goneAs === 'status') return replyError(response, 410, 'Expired', gone.message)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    if (from < oldest) return void response.end(`${JSON.stringify({ type: 'ERROR', object: gone })}\n`)
    const watcher = { collection, query, metadataOnly, response }
    for (const past of history) if (past.collection === collection && past.revision > from) deliver(watcher, past.event)
    watchers.add(watcher)
    response.on('close', () => watchers.delete(watcher))
  }

  const inject = (fault: Fault, request: RecordedRequest, response: ServerResponse): void => {
    switch (fault.kind) {
      case 'status':
        if (fault.retryAfterSeconds !== undefined) response.setHeader('retry-after', String(fault.retryAfterSeconds))
        return replyError(response, fault.status, fault.reason ?? 'Unknown', fault.message ?? 'injected')
      case 'reset':
        return void response.socket?.destroy()
      case 'lose-answer': {
        const socket = response.socket
        response.end = (() => socket?.destroy()) as unknown as typeof response.end
        return handle(request, response)
      }
      case 'silent':
        return
      case 'slow':
        return void setTimeout(() => handle(request, response), fault.ms)
      case 'held':
        return void fault.until.then(() => handle(request, response))
      case 'cut':
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
        return void response.write('{"kind":', () => response.socket?.destroy())
      case 'stream':
        response.writeHead(200, { 'content-type': 'application/json' })
        return void response.write(fault.text || '\n', () => {
          if (fault.after === 'end') response.end()
          if (fault.after === 'destroy') response.socket?.destroy()
        })
    }
  }

  const start = async (): Promise<void> => {
    server = createServer((incoming, response) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('end', () => {
        const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://fake')
        const text = Buffer.concat(chunks).toString()
        const request = {
          method: incoming.method ?? '',
          path: pathname,
          query: searchParams,
          headers: incoming.headers,
          body: text === '' ? undefined : (JSON.parse(text) as unknown),
        }
        requests.push(request)
        for (const answer of answers) {
          const fault = answer(request)
          if (fault) return inject(fault, request, response)
        }
        const hit = faults.find((one) => one.times > 0 && one.match(request))
        if (hit === undefined) return handle(request, response)
        hit.times--
        inject(hit.fault, request, response)
      })
    })
    server.keepAliveTimeout = 60_000
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    })
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  }
  await start()

  return {
    get url() {
      return `http://127.0.0.1:${port}`
    },
    connect: (options) =>
      createKubeTransport({
        credentials: staticCredentials({ server: `http://127.0.0.1:${port}` }),
        version: 'test',
        clock: systemClock,
        ...options,
      }),
    requests,
    serve: (collection) => void served.add(collection),
    unserve: (collection) => void served.delete(collection),
    put: (collection, object) => {
      served.add(collection)
      return write(collection, object as unknown as FakeObject)
    },
    remove: (collection, name) => void erase(collection, name),
    get: (collection, name) => items.get(`${collection}/${name}`)?.object,
    fault: (match, fault, times = 1) => void faults.push({ match, fault, times }),
    answerFirst: (answer) => void answers.unshift(answer),
    compact(how = 'event') {
      oldest = revision + 1
      revision++
      goneAs = how
      history.length = 0
    },
    bookmark() {
      for (const watcher of [...watchers].filter(({ collection }) => !collection.endsWith('/events')))
        deliver(
          { ...watcher, metadataOnly: false },
          { type: 'BOOKMARK', object: { metadata: { resourceVersion: String(revision) } } },
        )
    },
    endWatches(how) {
      for (const { response } of watchers) void (how === 'end' ? response.end() : response.socket?.destroy())
      watchers.clear()
    },
    openWatches: () => watchers.size,
    connections: () => sockets.size,
    start,
    async stop() {
      watchers.clear()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

const metadataOf = (object: FakeObject): FakeObject => ({
  apiVersion: 'meta.k8s.io/v1',
  kind: 'PartialObjectMetadata',
  metadata: object.metadata,
})

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.statusCode = status
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(body))
}

function replyError(response: ServerResponse, code: number, reason: string, message: string): void {
  reply(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message })
}

function locate(
  path: string,
  served: ReadonlySet<string>,
): { collection?: string; name?: string | undefined; subresource?: string | undefined } {
  for (const collection of served) {
    if (path === collection) return { collection }
    if (!path.startsWith(`${collection}/`)) continue
    const [name, subresource] = path.slice(collection.length + 1).split('/')
    return { collection, name: decodeURIComponent(name ?? ''), subresource }
  }
  return {}
}

/** Equality, `in`, `notin`, existence and absence of labels; `metadata.name=x` and `spec.nodeName=x` of fields. */
function selects(query: URLSearchParams, object: FakeObject): boolean {
  const wantedName = /^metadata\.name=(.*)$/.exec(query.get('fieldSelector') ?? '')?.[1]
  if (wantedName !== undefined && object.metadata.name !== wantedName) return false
  const wantedNode = /^spec\.nodeName=(.*)$/.exec(query.get('fieldSelector') ?? '')?.[1]
  if (wantedNode !== undefined && (object['spec'] as { nodeName?: string } | undefined)?.nodeName !== wantedNode)
    return false
  const labels = (object.metadata['labels'] ?? {}) as Record<string, string>
  return (query.get('labelSelector') ?? '').split(/,(?![^(]*\))/).every((part) => {
    const set = /^(\S+) (in|notin) \((.*)\)$/.exec(part)
    if (set !== null)
      return (
        (labels[set[1] ?? ''] !== undefined && (set[3] ?? '').split(',').includes(labels[set[1] ?? ''] ?? '')) ===
        (set[2] === 'in')
      )
    if (part.startsWith('!')) return labels[part.slice(1)] === undefined
    const [key = '', value] = part.split('=')
    return key === '' || (value === undefined ? labels[key] !== undefined : labels[key] === value)
  })
}

function patched(before: FakeObject, patch: FakeObject, subresource: string | undefined): FakeObject {
  const { conditions, ...status } = (patch['status'] ?? {}) as { conditions?: { type: string; $patch?: string }[] }
  const merged = merge(before, { ...patch, ...(patch['status'] === undefined ? {} : { status }) }) as FakeObject
  if (subresource === 'status') merged['spec'] = before['spec']
  else if (before['status'] !== undefined) merged['status'] = before['status']
  if (conditions !== undefined && subresource === 'status') {
    const old = ((before['status'] as { conditions?: { type: string }[] } | undefined)?.conditions ?? []).filter(
      (one) => !conditions.some((other) => other.type === one.type),
    )
    merged['status'] = {
      ...(merged['status'] as object),
      conditions: [...old, ...conditions.filter((one) => one.$patch !== 'delete')],
    }
  }
  return merged
}

function merge(before: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const result: Record<string, unknown> = { ...(before as Record<string, unknown> | undefined) }
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = merge(result[key], value)
  }
  return result
}
