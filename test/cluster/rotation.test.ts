/** Certificates and tokens that change under a running agent. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { serviceAccountFiles } from '../../src/daemon/platform/service-account.ts'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { inClusterCredentials } from '../../src/kube/credentials.ts'
import { createKubeTransport, type CompletedRequest, type KubeTransport } from '../../src/kube/transport.ts'
import { createAuthority } from '../kit/cluster/pki.ts'

type Pair = { readonly ca: string; readonly cert: string; readonly key: string }

let dir: string
let pairs: Record<'old' | 'new', Pair>
let server: Server
let transport: KubeTransport
let facts: CompletedRequest[]

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'skyhookd-rotation-'))
  const make = async (): Promise<Pair> => {
    const folder = await mkdtemp(join(dir, 'ca-'))
    const pki = await createAuthority(folder)
    const { certFile, keyFile } = await pki.issue(
      'server',
      '/CN=server',
      'extendedKeyUsage=serverAuth\nsubjectAltName=IP:127.0.0.1\n',
    )
    return {
      ca: await readFile(pki.caFile, 'utf8'),
      cert: await readFile(certFile, 'utf8'),
      key: await readFile(keyFile, 'utf8'),
    }
  }
  pairs = { old: await make(), new: await make() }
})
afterAll(async () => await rm(dir, { recursive: true }))

afterEach(async () => {
  transport.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/** A server that accepts one token, and an agent with the given ServiceAccount files. */
async function start(token: string): Promise<void> {
  await writeFile(join(dir, 'token'), token)
  await writeFile(join(dir, 'ca.crt'), pairs.old.ca)
  server = createServer({ cert: pairs.old.cert, key: pairs.old.key }, (request, response) => {
    response.statusCode = request.headers.authorization === 'Bearer good' ? 200 : 401
    response.end(request.url === '/watch' ? undefined : '{"answer":42}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const env = {
    KUBERNETES_SERVICE_HOST: '127.0.0.1',
    KUBERNETES_SERVICE_PORT: String((server.address() as AddressInfo).port),
  }
  facts = []
  transport = createKubeTransport({
    credentials: inClusterCredentials({ env, files: serviceAccountFiles(dir), clock: systemClock }),
    version: 'test',
    clock: systemClock,
    onRequest: (fact) => facts.push(fact),
  })
}

test('the client reads a renewed token on the first 401', async () => {
  await start('good')
  expect(await transport.json('GET', '/')).toEqual({ answer: 42 })
  await writeFile(join(dir, 'token'), 'expired')
  await new Promise((resolve) => setTimeout(resolve, 10))
  await expect(transport.json('GET', '/')).resolves.toEqual({ answer: 42 }) // still valid in memory
  transport.close()
  server.close()
  await start('expired')
  await expect(transport.json('GET', '/')).rejects.toMatchObject({ status: 401 })
  await writeFile(join(dir, 'token'), 'good')
  expect(await transport.json('GET', '/')).toEqual({ answer: 42 })
  expect(facts.map(({ code }) => code)).toEqual([401, 401, 401, 200])
})

test('the client trusts a server certificate of a new CA as soon as the CA file changes, and not before', async () => {
  await start('good')
  expect(await transport.json('GET', '/')).toEqual({ answer: 42 })
  server.setSecureContext({ cert: pairs.new.cert, key: pairs.new.key })
  server.closeAllConnections()
  await new Promise((resolve) => setTimeout(resolve, 50)) // until the kept-alive connection has noticed
  await expect(transport.json('POST', '/', { body: {} })).rejects.toMatchObject({
    name: 'NoResponseError',
    mayHaveBeenSent: false,
  })
  await writeFile(join(dir, 'ca.crt'), pairs.new.ca)
  expect(await transport.json('POST', '/', { body: {} })).toEqual({ answer: 42 })
})

test('the client sends nothing to a server with a certificate of another CA', async () => {
  await start('good')
  server.setSecureContext({ cert: pairs.new.cert, key: pairs.new.key })
  let seen = 0
  server.on('request', () => seen++)
  await expect(transport.json('GET', '/')).rejects.toMatchObject({ mayHaveBeenSent: false })
  expect(seen).toBe(0)
})
