import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { ociConfigType, ociLayerGzipType, ociManifestType } from '../../../src/packages/oci/manifest.ts'
import { type Digest, digestOf } from '../../../src/packages/oci/reference.ts'

/** A registry for tests: the distribution API on loopback, in memory, which records every request. */
export type FakeRegistry = {
  /** `127.0.0.1:<port>` */
  readonly host: string
  readonly requests: { readonly line: string; readonly headers: IncomingMessage['headers'] }[]
  /** May answer instead of the registry; true = answered. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean
  addBlob(repository: string, bytes: Buffer): Digest
  addManifest(repository: string, tag: string | undefined, document: object, mediaType?: string): Digest
  /** An image of one layer; returns its manifest's digest. */
  addImage(repository: string, tag: string | undefined, layer: Buffer): Digest
  manifest(repository: string, tagOrDigest: string): Buffer | undefined
  blob(repository: string, digest: string): Buffer | undefined
  close(): Promise<void>
}

export type FakeLogin = { readonly kind: 'basic' | 'bearer'; readonly username: string; readonly password: string }

const fixture = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}`, import.meta.url), 'utf8')

/** The authority of every fake registry with TLS. */
export const fakeCaCert = fixture('ca.crt')

export async function startFakeRegistry(options: { tls?: boolean; login?: FakeLogin } = {}): Promise<FakeRegistry> {
  const { tls = false, login } = options
  const manifests = new Map<string, { bytes: Buffer; mediaType: string }>()
  const blobs = new Map<string, Buffer>()
  const requests: FakeRegistry['requests'] = []
  const token = 'token-of-the-fake'

  const refuse = (
    response: ServerResponse,
    status: number,
    code: string,
    message: string,
    headers: Record<string, string> = {},
  ) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify({ errors: [{ code, message }] }))
  }
  const basicOf = ({ username, password }: FakeLogin) =>
    `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

  const isAuthorized = (request: IncomingMessage, response: ServerResponse): boolean => {
    if (login === undefined) return true
    const expected = login.kind === 'basic' ? basicOf(login) : `Bearer ${token}`
    if (request.headers.authorization === expected) return true
    const challenge =
      login.kind === 'basic'
        ? 'Basic realm="fake"'
        : `Bearer realm="${registry.host === '' ? '' : base()}/token",service="fake",scope="repository:any:pull"`
    refuse(response, 401, 'UNAUTHORIZED', 'authentication required', { 'www-authenticate': challenge })
    return false
  }

  const serveToken = (request: IncomingMessage, response: ServerResponse) => {
    if (login === undefined || request.headers.authorization !== basicOf(login))
      return refuse(response, 401, 'UNAUTHORIZED', 'incorrect username or password')
    response.end(JSON.stringify({ token, expires_in: 300 }))
  }

  const serveBlob = (bytes: Buffer | undefined, request: IncomingMessage, response: ServerResponse) => {
    if (bytes === undefined) return refuse(response, 404, 'BLOB_UNKNOWN', 'blob unknown to registry')
    const offset = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
    if (offset > 0) response.setHeader('content-range', `bytes ${offset}-${bytes.length - 1}/${bytes.length}`)
    response.writeHead(offset > 0 ? 206 : 200, { 'content-length': bytes.length - offset })
    response.end(request.method === 'HEAD' ? undefined : bytes.subarray(offset))
  }

  const answer = (request: IncomingMessage, response: ServerResponse, body: Buffer) => {
    const url = new URL(request.url ?? '/', base())
    if (registry.intercept(request, response)) return
    if (url.pathname === '/token') return serveToken(request, response)
    if (!isAuthorized(request, response)) return
    const [, repository = '', kind, name = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/(.*)$/.exec(url.pathname) ?? []
    const key = `${repository}/${name}`
    if (kind === 'manifests' && request.method === 'PUT') {
      registry.addManifest(
        repository,
        name.startsWith('sha256:') ? undefined : name,
        JSON.parse(body.toString('utf8')) as object,
        request.headers['content-type'],
        body,
      )
      response.writeHead(201).end()
    } else if (kind === 'manifests') {
      const found = manifests.get(key)
      if (found === undefined) return refuse(response, 404, 'MANIFEST_UNKNOWN', `manifest ${name} unknown`)
      response.writeHead(200, { 'content-type': found.mediaType, 'docker-content-digest': digestOf(found.bytes) })
      response.end(request.method === 'HEAD' ? undefined : found.bytes)
    } else if (kind === 'blobs' && request.method === 'POST') {
      response.writeHead(202, { location: `/v2/${repository}/blobs/uploads/1?state=abc` }).end()
    } else if (kind === 'blobs' && request.method === 'PUT') {
      const digest = url.searchParams.get('digest')
      if (digest !== digestOf(body))
        return refuse(response, 400, 'DIGEST_INVALID', 'provided digest did not match uploaded content')
      blobs.set(`${repository}/${digest}`, body)
      response.writeHead(201).end()
    } else if (kind === 'blobs') {
      serveBlob(blobs.get(key), request, response)
    } else {
      refuse(response, 404, 'NAME_UNKNOWN', 'repository name not known to registry')
    }
  }

  const listener: RequestListener = (request, response) => {
    requests.push({ line: `${request.method} ${request.url}`, headers: request.headers })
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => answer(request, response, Buffer.concat(chunks)))
  }
  const server = tls
    ? createSecureServer({ cert: fixture('localhost.crt'), key: fixture('localhost.key') }, listener)
    : createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const base = () => `${tls ? 'https' : 'http'}://${host}`

  const registry = {
    host,
    requests,
    intercept: (_request: IncomingMessage, _response: ServerResponse) => false,
    addBlob(repository: string, bytes: Buffer): Digest {
      const digest = digestOf(bytes)
      blobs.set(`${repository}/${digest}`, bytes)
      return digest
    },
    addManifest(
      repository: string,
      tag: string | undefined,
      document: object,
      mediaType = ociManifestType,
      raw?: Buffer,
    ): Digest {
      const bytes = raw ?? Buffer.from(JSON.stringify(document))
      const digest = digestOf(bytes)
      for (const name of [digest, ...(tag === undefined ? [] : [tag])])
        manifests.set(`${repository}/${name}`, { bytes, mediaType })
      return digest
    },
    addImage(repository: string, tag: string | undefined, layer: Buffer): Digest {
      const config = Buffer.from('{}')
      const descriptor = (mediaType: string, bytes: Buffer) => ({
        mediaType,
        digest: registry.addBlob(repository, bytes),
        size: bytes.length,
      })
      return registry.addManifest(repository, tag, {
        schemaVersion: 2,
        mediaType: ociManifestType,
        config: descriptor(ociConfigType, config),
        layers: [descriptor(ociLayerGzipType, layer)],
      })
    },
    manifest: (repository: string, tagOrDigest: string) => manifests.get(`${repository}/${tagOrDigest}`)?.bytes,
    blob: (repository: string, digest: string) => blobs.get(`${repository}/${digest}`),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return registry
}
