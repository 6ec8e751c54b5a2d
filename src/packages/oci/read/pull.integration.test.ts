import { connect, createServer, type AddressInfo } from 'node:net'
import { readFile } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../../test/kit/files/temporary-folder.ts'
import { systemRandom } from '../../../daemon/platform/system-clock.ts'
import { type Credential, type Login, parseDockerConfig } from './credentials.ts'
import type { RegistryRule } from './endpoints.ts'
import {
  fakeCaCert,
  type FakeLogin,
  type FakeRegistry,
  startFakeRegistry,
} from '../../../../test/kit/registry/fake-registry.ts'
import { fakeIndex, fakeSources } from '../../../../test/kit/registry/registry-documents.ts'
import { ociIndexType } from '../manifest.ts'
import { downloadLayers } from '../../store/unpack-download.ts'
import type { LoginProvider, ProvidedLogins } from './logins.ts'
import { type SelectedImage, resolveImage, type ResolvedImage, selectImage } from './pull.ts'
import { parseReference } from '../reference.ts'
import { createRegistryClient, type RegistryClient, type RegistrySettings } from './registry.ts'
import type { Clock } from '../../../schemas/clock.ts'

const layerBytes = Buffer.from('a layer, or as good as one to a client that never opens it')
const otherDigest = `sha256:${'0'.repeat(64)}`
const fakeLogin: FakeLogin = { kind: 'basic', username: 'lab', password: 'secret' }
const { signal } = new AbortController()

const opened: { close(): unknown }[] = []
let directory = ''
let waits: number[] = []

beforeEach(() => {
  directory = temporaryFolder()
  waits = []
})
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
})

async function registry(options: Parameters<typeof startFakeRegistry>[0] = {}): Promise<FakeRegistry> {
  const started = await startFakeRegistry(options)
  opened.push(started)
  return started
}

/** A clock that only records the requested waits; no time limit passes here. */
const fastClock: Clock = {
  wallMs: () => 0,
  steadyMs: () => 0,
  monotonicMs: () => 0,
  startTimer(delayMs, callback, options) {
    if (options?.isBackground) return () => {}
    waits.push(delayMs)
    queueMicrotask(callback)
    return () => {}
  },
}
const medianRandom = { ...systemRandom, number: () => 0.5 }

function client(
  rules: readonly RegistryRule[],
  more: Partial<RegistrySettings> & { certs?: Record<string, string>; loginProvider?: LoginProvider | undefined } = {},
): RegistryClient {
  const { certs = {}, loginProvider, ...settings } = more
  const created = createRegistryClient(
    { credentials: [], sources: fakeSources(rules, certs), ...settings },
    { clock: fastClock, random: medianRandom, loginProvider },
  )
  opened.push(created)
  return created
}

function credentialsFor(host: string, { username, password } = fakeLogin): Credential[] {
  return parseDockerConfig(JSON.stringify({ auths: { [host]: { username, password } } }), 'test')
}

async function pull(
  from: RegistryClient,
  reference: string,
): Promise<{ resolved: ResolvedImage; image: SelectedImage; layers: string[] }> {
  const resolved = await resolveImage(from, parseReference(reference), signal)
  const image = await selectImage(from, resolved, 'amd64', signal)
  const files = await downloadLayers(from, resolved.reference, image.layers, directory, signal)
  return { resolved, image, layers: await Promise.all(files.map(({ path }) => readFile(path, 'utf8'))) }
}

const plain = (one: FakeRegistry): RegistryRule => ({ host: one.host, plainHTTP: true })
const lines = (one: FakeRegistry) => one.requests.map(({ line }) => line)

describe('logging in', () => {
  test('a login is not tried where the registry asks for none', async () => {
    const r = await registry()
    const digest = r.addImage('team/pkg', '1.0', layerBytes)
    const { resolved, layers } = await pull(
      client([plain(r)], { credentials: credentialsFor(r.host) }),
      `${r.host}/team/pkg:1.0`,
    )
    expect(resolved.digest).toBe(digest)
    expect(layers).toEqual([layerBytes.toString()])
    expect(r.requests.every(({ headers }) => headers.authorization === undefined)).toBe(true)
  })

  test('a Basic login costs one extra request for the whole pull', async () => {
    const r = await registry({ login: fakeLogin })
    r.addImage('pkg', '1', layerBytes)
    await pull(client([plain(r)], { credentials: credentialsFor(r.host) }), `${r.host}/pkg:1`)
    expect(lines(r)).toEqual([
      'GET /v2/pkg/manifests/1',
      'GET /v2/pkg/manifests/1',
      expect.stringMatching(/^GET \/v2\/pkg\/blobs/),
    ])
  })

  test('a token login asks the realm with service and scope and shows the login to it alone', async () => {
    const r = await registry({ login: { ...fakeLogin, kind: 'bearer' } })
    r.addImage('pkg', '1', layerBytes)
    await pull(client([plain(r)], { credentials: credentialsFor(r.host) }), `${r.host}/pkg:1`)
    expect(lines(r)[1]).toBe('GET /token?service=fake&scope=repository%3Aany%3Apull')
    expect(r.requests[1]?.headers.authorization).toMatch(/^Basic /)
    expect(r.requests[2]?.headers.authorization).toMatch(/^Bearer /)
    expect(lines(r)).toHaveLength(4)
  })

  describe('by a provider', () => {
    const passwordLogin = (password: string): Login => ({ kind: 'password', username: fakeLogin.username, password })
    const right = passwordLogin(fakeLogin.password)

    function fakeProvider(answer: Partial<ProvidedLogins>) {
      const asked: string[] = []
      const forgotten: string[] = []
      const provider: LoginProvider = {
        async loginsOf(image) {
          asked.push(image)
          return { logins: [], providers: ['own'], problems: [], ...answer }
        },
        forget: (image) => void forgotten.push(image),
      }
      return { provider, asked, forgotten }
    }

    test('it is asked once for the whole pull, and its login goes with the credentials of the image', async () => {
      const r = await registry({ login: fakeLogin })
      r.addImage('team/pkg', '1', layerBytes)
      const { provider, asked, forgotten } = fakeProvider({ logins: [right] })
      const c = client([plain(r)], { loginProvider: provider })
      await pull(c, `${r.host}/team/pkg:1`)
      expect(asked).toEqual([`${r.host}/team/pkg`])
      expect(forgotten).toEqual([])
      expect(c.providedCredentials()).toEqual([{ images: `${r.host}/team/pkg`, login: right }])
      const unpacker = client([plain(r)], { credentials: c.providedCredentials() })
      await resolveImage(unpacker, parseReference(`${r.host}/team/pkg:1`), signal)
    })

    test('it is not asked where a pull secret matches, even one that is refused', async () => {
      const r = await registry({ login: fakeLogin })
      const { provider, asked } = fakeProvider({ logins: [right] })
      const credentials = credentialsFor(r.host, { ...fakeLogin, password: 'wrong' })
      const c = client([plain(r)], { credentials, loginProvider: provider })
      await expect(pull(c, `${r.host}/pkg:1`)).rejects.toThrow('used the login of a pull secret')
      expect(asked).toEqual([])
    })

    test('it is not asked where the registry wants no login', async () => {
      const r = await registry()
      r.addImage('pkg', '1', layerBytes)
      const { provider, asked } = fakeProvider({ logins: [right] })
      await pull(client([plain(r)], { loginProvider: provider }), `${r.host}/pkg:1`)
      expect(asked).toEqual([])
    })

    test.each(['basic', 'bearer'] as const)(
      'its logins are tried in order where they are refused (%s)',
      async (kind) => {
        const r = await registry({ login: { ...fakeLogin, kind } })
        r.addImage('pkg', '1', layerBytes)
        const { provider, forgotten } = fakeProvider({ logins: [passwordLogin('old'), right, passwordLogin('other')] })
        const c = client([plain(r)], { loginProvider: provider })
        await pull(c, `${r.host}/pkg:1`)
        expect(c.providedCredentials()).toMatchObject([{ login: right }])
        expect(forgotten).toEqual([])
      },
    )

    test.each(['basic', 'bearer'] as const)('it hears that all of its logins are refused (%s)', async (kind) => {
      const r = await registry({ login: { ...fakeLogin, kind } })
      const { provider, forgotten } = fakeProvider({ logins: [passwordLogin('old')], problems: ['other: exit code 1'] })
      const c = client([plain(r)], { loginProvider: provider })
      const pulling = pull(c, `${r.host}/pkg:1`)
      await expect(pulling).rejects.toMatchObject({ code: 'unauthorized' })
      await expect(pulling).rejects.toThrow(
        "(used the login of the kubelet's credential provider own; other: exit code 1)",
      )
      expect(forgotten).toEqual([`${r.host}/pkg`])
      expect(c.providedCredentials()).toEqual([])
    })

    test.each<[answer: Partial<ProvidedLogins>, hint: string]>([
      [{ providers: [] }, ', and no credential provider of the kubelet does'],
      [{}, ", and own of the kubelet's credential providers gave no login for it"],
      [{ problems: ['own: exit code 1'] }, '; credential providers of the kubelet: own: exit code 1'],
    ])('a refusal without a login says what the provider said: %j', async (answer, hint) => {
      const r = await registry({ login: fakeLogin })
      const c = client([plain(r)], { loginProvider: fakeProvider(answer).provider })
      await expect(pull(c, `${r.host}/pkg:1`)).rejects.toThrow(`(no pull secret matches ${r.host}/pkg${hint})`)
    })
  })

  test('an expired token is renewed once', async () => {
    const r = await registry({ login: { ...fakeLogin, kind: 'bearer' } })
    r.addImage('pkg', '1', layerBytes)
    const c = client([plain(r)], { credentials: credentialsFor(r.host) })
    await resolveImage(c, parseReference(`${r.host}/pkg:1`), signal)
    let isExpired = true
    r.intercept = (_request, response) => {
      if (!isExpired) return false
      isExpired = false
      response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${r.host}/token"` }).end()
      return true
    }
    await expect(resolveImage(c, parseReference(`${r.host}/pkg:1`), signal)).resolves.toBeDefined()
    expect(lines(r).at(-2)).toBe('GET /token?scope=repository%3Apkg%3Apull') // the default scope
  })

  test.each([
    { kind: 'basic' as const, expected: /UNAUTHORIZED: authentication required/ },
    { kind: 'bearer' as const, expected: /incorrect username or password/ },
  ])(
    "a pull that fails ($kind) reports the registry's answer and whether there was a secret",
    async ({ kind, expected }) => {
      const r = await registry({ login: { ...fakeLogin, kind } })
      const attempt = (credentials: Credential[]) =>
        resolveImage(client([plain(r)], { credentials }), parseReference(`${r.host}/pkg:1`), signal)
      const wrong = attempt(credentialsFor(r.host, { ...fakeLogin, password: 'wrong' }))
      await expect(wrong).rejects.toMatchObject({ code: 'unauthorized', message: expect.stringMatching(expected) })
      await expect(wrong).rejects.toThrow(/the login of a pull secret/)
      await expect(attempt([])).rejects.toThrow(`no pull secret matches ${r.host}/pkg`)
      expect(waits).toEqual([])
    },
  )
})

describe('redirects', () => {
  test('a redirect to another host drops the login, one to the same host keeps it', async () => {
    const storage = await registry()
    const r = await registry({ login: fakeLogin })
    const digest = r.addImage('pkg', '1', layerBytes)
    r.intercept = (request, response) => {
      if (!request.url?.includes('/blobs/') || request.headers.authorization === undefined) return false
      if (request.url.endsWith('?again')) response.writeHead(307, { location: `http://${storage.host}/signed` }).end()
      else response.writeHead(302, { location: `${request.url}?again` }).end()
      return true
    }
    storage.intercept = (_request, response) => {
      response.end(layerBytes)
      return true
    }
    const { resolved } = await pull(client([plain(r)], { credentials: credentialsFor(r.host) }), `${r.host}/pkg:1`)
    expect(resolved.digest).toBe(digest)
    expect(
      r.requests
        .filter(({ line }) => line.endsWith('?again'))
        .map(({ headers }) => headers.authorization !== undefined),
    ).toEqual([true])
    expect(storage.requests.map(({ headers }) => headers.authorization)).toEqual([undefined])
  })

  test('a redirect from https to http is refused', async () => {
    const r = await registry({ tls: true })
    r.intercept = (_request, response) => {
      response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()
      return true
    }
    await expect(
      resolveImage(client([{ host: r.host, ca: fakeCaCert }]), parseReference(`${r.host}/pkg:1`), signal),
    ).rejects.toMatchObject({
      code: 'bad-response',
      message: expect.stringMatching(/from https to http/),
    })
  })

  test('a registry with https cannot name a token server without it', async () => {
    const r = await registry({ tls: true })
    r.intercept = (_request, response) => {
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="http://127.0.0.1:1/token"' }).end()
      return true
    }
    await expect(
      resolveImage(client([{ host: r.host, ca: fakeCaCert }]), parseReference(`${r.host}/pkg:1`), signal),
    ).rejects.toMatchObject({ code: 'bad-response', message: expect.stringMatching(/is not https/) })
  })

  test('endless redirects are given up', async () => {
    const r = await registry()
    r.intercept = (_request, response) => {
      response.writeHead(302, { location: '/again' }).end()
      return true
    }
    await expect(resolveImage(client([plain(r)]), parseReference(`${r.host}/pkg:1`), signal)).rejects.toThrow(
      /more than 5 redirects/,
    )
  })
})

describe('TLS', () => {
  test('TLS needs the authority set in the chart or for containerd', async () => {
    const r = await registry({ tls: true })
    r.addImage('pkg', '1', layerBytes)
    const reference = parseReference(`${r.host}/pkg:1`)
    await expect(resolveImage(client([]), reference, signal)).rejects.toMatchObject({ code: 'tls' })
    await expect(resolveImage(client([{ host: r.host, ca: fakeCaCert }]), reference, signal)).resolves.toBeDefined()
    const certs = { [`/etc/containerd/certs.d/${r.host}/ca.crt`]: fakeCaCert }
    await expect(resolveImage(client([], { certs }), reference, signal)).resolves.toBeDefined()
    const bundle = { '/etc/pki/tls/certs/ca-bundle.crt': fakeCaCert }
    await expect(resolveImage(client([], { certs: bundle }), reference, signal)).resolves.toBeDefined()
  })

  test('TLS is used unless the registry is set to plain HTTP', async () => {
    const r = await registry()
    await expect(resolveImage(client([]), parseReference(`${r.host}/pkg:1`), signal)).rejects.toMatchObject({
      code: 'tls',
    })
    expect(r.requests).toEqual([])
  })
})

describe('mirrors', () => {
  const closedPort = async (): Promise<string> => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    return `127.0.0.1:${port}`
  }

  test('mirrors are asked in order with the namespace they serve, and the registry last', async () => {
    const [first, second, upstream] = [await registry(), await registry(), await registry()]
    upstream.addImage('pkg', '1', layerBytes)
    const certs = {
      [`/etc/containerd/certs.d/${upstream.host.replace(':', '_')}_/hosts.toml`]: `[host."http://${first.host}"]\n[host."http://${first.host}".header]\nx-tenant = "blue"`,
    }
    await pull(
      client([{ ...plain(upstream), mirrors: [`http://${second.host}/cache`] }], { certs }),
      `${upstream.host}/pkg:1`,
    )
    const ns = `?ns=${encodeURIComponent(upstream.host)}`
    expect(lines(first)[0]).toBe(`GET /v2/pkg/manifests/1${ns}`)
    expect(first.requests[0]?.headers['x-tenant']).toBe('blue')
    expect(lines(second)[0]).toBe(`GET /cache/v2/pkg/manifests/1${ns}`)
    expect(second.requests[0]?.headers['x-tenant']).toBeUndefined()
    expect(lines(upstream)[0]).toBe('GET /v2/pkg/manifests/1')
  })

  test('a mirror that is down costs one attempt per pull, not one per blob', async () => {
    let connections = 0
    const mirror = createServer((socket) => {
      connections++
      socket.destroy()
    })
    await new Promise<void>((resolve) => mirror.listen(0, '127.0.0.1', resolve))
    opened.push({ close: () => mirror.close() })
    const upstream = await registry()
    upstream.addImage('pkg', '1', layerBytes)
    const address = `http://127.0.0.1:${(mirror.address() as AddressInfo).port}`
    const { layers } = await pull(client([{ ...plain(upstream), mirrors: [address] }]), `${upstream.host}/pkg:1`)
    expect(layers).toEqual([layerBytes.toString()])
    expect([connections, waits]).toEqual([1, []])
  })

  test('a mirror without "resolve" is asked for digests only', async () => {
    const [mirror, upstream] = [await registry(), await registry()]
    const digest = upstream.addImage('pkg', '1', layerBytes)
    mirror.addImage('pkg', '1', layerBytes)
    const certs = {
      [`/etc/containerd/certs.d/_default/hosts.toml`]: `[host."http://${mirror.host}"]\ncapabilities = ["pull"]`,
    }
    const c = client([plain(upstream)], { certs })
    await resolveImage(c, parseReference(`${upstream.host}/pkg:1`), signal)
    expect(lines(mirror)).toEqual([])
    await resolveImage(c, parseReference(`${upstream.host}/pkg@${digest}`), signal)
    expect(lines(mirror)).toHaveLength(1)
  })

  test('a mirror does not get the login of its registry', async () => {
    const [mirror, upstream] = [await registry({ login: fakeLogin }), await registry({ login: fakeLogin })]
    upstream.addImage('pkg', '1', layerBytes)
    await pull(
      client([{ ...plain(upstream), mirrors: [`http://${mirror.host}`] }], {
        credentials: credentialsFor(upstream.host),
      }),
      `${upstream.host}/pkg:1`,
    )
    expect(mirror.requests.every(({ headers }) => headers.authorization === undefined)).toBe(true)
  })

  test('a mirror with wrong content is skipped', async () => {
    const [mirror, upstream] = [await registry(), await registry()]
    const digest = upstream.addImage('pkg', '1', layerBytes)
    mirror.intercept = (request, response) => {
      response.end(
        request.url?.includes('/manifests/') ? '{"schemaVersion":2,"layers":[]}' : 'x'.repeat(layerBytes.length),
      )
      return true
    }
    const { layers } = await pull(
      client([{ ...plain(upstream), mirrors: [`http://${mirror.host}`] }]),
      `${upstream.host}/pkg@${digest}`,
    )
    expect(layers).toEqual([layerBytes.toString()])
  })

  test('an answer that mirror and registry share is reported once, with both addresses', async () => {
    const [mirror, upstream] = [await registry(), await registry()]
    const attempt = resolveImage(
      client([{ ...plain(upstream), mirrors: [`http://${mirror.host}`] }]),
      parseReference(`${upstream.host}/pkg:1`),
      signal,
    )
    await expect(attempt).rejects.toMatchObject({
      code: 'not-found',
      message: expect.stringMatching(
        `^${mirror.host}, ${upstream.host}: (?!.*MANIFEST_UNKNOWN.*MANIFEST_UNKNOWN)`,
      ) as string,
    })
  })

  test('a mirror’s answer is the reason when the registry is unreachable, and all addresses are named', async () => {
    const [mirror, dead] = [await registry(), await closedPort()]
    const attempt = resolveImage(
      client([{ host: dead, plainHTTP: true, mirrors: [`http://${mirror.host}`] }]),
      parseReference(`${dead}/pkg:1`),
      signal,
    )
    await expect(attempt).rejects.toMatchObject({
      code: 'not-found',
      message: expect.stringMatching(`${mirror.host}: MANIFEST_UNKNOWN.*; ${dead}: .*ECONNREFUSED`),
    })
    expect(waits).toEqual([]) // the answer is final
  })
})

describe('what may pass by itself', () => {
  test.each([
    { status: 503, headers: {}, expected: [250, 500] },
    { status: 429, headers: { 'retry-after': '7' }, expected: [7000, 7000] },
  ])('a transient status $status is retried after a wait', async ({ status, headers, expected }) => {
    const r = await registry()
    r.addImage('pkg', '1', layerBytes)
    let left = 2
    r.intercept = (_request, response) => {
      if (left-- <= 0) return false
      response.writeHead(status, headers).end()
      return true
    }
    await resolveImage(client([plain(r)]), parseReference(`${r.host}/pkg:1`), signal)
    expect(waits).toEqual(expected)
  })

  test('retrying ends after four attempts, or when the registry asks for too long a wait', async () => {
    const r = await registry()
    const headers: Record<string, string> = {}
    r.intercept = (_request, response) => {
      response.writeHead(429, headers).end('{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}')
      return true
    }
    const attempt = () => resolveImage(client([plain(r)]), parseReference(`${r.host}/pkg:1`), signal)
    await expect(attempt()).rejects.toMatchObject({ code: 'rate-limited', message: expect.stringMatching(/slow down/) })
    expect(lines(r)).toHaveLength(4)
    headers['retry-after'] = '3600'
    await expect(attempt()).rejects.toMatchObject({ code: 'rate-limited', retryAfterMs: 3_600_000 })
    expect(lines(r)).toHaveLength(5)
  })

  test('an interrupted blob continues where it broke off', async () => {
    const r = await registry()
    r.addImage('pkg', '1', layerBytes)
    r.intercept = (request, response) => {
      if (!request.url?.includes('/blobs/') || request.headers.range !== undefined) return false
      response.writeHead(200, { 'content-length': layerBytes.length })
      response.write(layerBytes.subarray(0, 10), () => response.destroy())
      return true
    }
    const { layers } = await pull(client([plain(r)]), `${r.host}/pkg:1`)
    expect(layers).toEqual([layerBytes.toString()])
    expect(r.requests.at(-1)?.headers.range).toBe('bytes=10-')
  })

  test('a registry that falls silent is given up, before the answer and within it', async () => {
    const r = await registry()
    r.addImage('pkg', '1', layerBytes)
    const patient = client([plain(r)])
    const resolved = await resolveImage(patient, parseReference(`${r.host}/pkg:1`), signal)
    const { layers } = await selectImage(patient, resolved, 'amd64', signal)
    let silences = 0
    r.intercept = (_, response) => {
      if (silences === 2) return false
      if (silences++ === 1) response.writeHead(200, { 'content-length': layerBytes.length }).write('a')
      return true
    }
    const impatient = client([plain(r)], { noProgressMs: 500 })
    const [file] = await downloadLayers(impatient, resolved.reference, layers, directory, signal)
    expect(await readFile(file?.path ?? '', 'utf8')).toBe(layerBytes.toString())
    expect(silences).toBe(2)
  })

  test('aborting ends the pull with the reason of the abort', async () => {
    const r = await registry()
    const controller = new AbortController()
    r.intercept = () => {
      controller.abort(new Error('the package left the spec'))
      return true
    }
    const attempt = resolveImage(client([plain(r)]), parseReference(`${r.host}/pkg:1`), controller.signal)
    await expect(attempt).rejects.toThrow('the package left the spec')
  })
})

describe('what is wrong for good', () => {
  const code = async (r: FakeRegistry, name: string) =>
    await pull(client([plain(r)]), `${r.host}/${name}`).then(
      () => 'pulled',
      (error: { code?: string }) => error.code,
    )

  test('an unknown tag is reported in the words of the registry', async () => {
    const r = await registry()
    const attempt = resolveImage(client([plain(r)]), parseReference(`${r.host}/pkg:9`), signal)
    await expect(attempt).rejects.toMatchObject({
      code: 'not-found',
      message: `${r.host}: MANIFEST_UNKNOWN: manifest 9 unknown`,
    })
  })

  test('bytes that do not match their digest are refused in manifest and layer', async () => {
    const r = await registry()
    r.addImage('pkg', '1', layerBytes)
    r.intercept = (request, response) => {
      if (request.url?.endsWith(`/manifests/${otherDigest}`)) response.end(r.manifest('pkg', '1'))
      else if (request.url?.includes('/blobs/')) response.end('x'.repeat(layerBytes.length))
      else return false
      return true
    }
    expect(await code(r, `pkg@${otherDigest}`)).toBe('digest-mismatch')
    expect(await code(r, 'pkg:1')).toBe('digest-mismatch')
  })

  test('a layer longer than announced is cut off, not stored', async () => {
    const r = await registry()
    r.addImage('pkg', '1', layerBytes)
    r.intercept = (request, response) => {
      if (!request.url?.includes('/blobs/')) return false
      const more = Buffer.alloc(64 * 1024)
      const writeMore = (error?: Error | null): void => {
        if (!error) response.write(more, writeMore)
      }
      response.write(layerBytes, writeMore)
      return true
    }
    expect(await code(r, 'pkg:1')).toBe('digest-mismatch')
  })

  test('a 403, a refusal in HTML and a nonsensical answer are told apart', async () => {
    const r = await registry()
    const answers: [number, string][] = [
      [403, '{"errors":[{"code":"DENIED","message":"no pull for you"}]}'],
      [502, '<html><h1>Bad\nGateway</h1></html>'],
      [200, 'nonsense'],
    ]
    r.intercept = (_request, response) => {
      const [status, body] = answers[0] ?? [200, '']
      response.writeHead(status).end(body)
      return true
    }
    const attempt = () => resolveImage(client([plain(r)]), parseReference(`${r.host}/pkg:1`), signal)
    await expect(attempt()).rejects.toMatchObject({
      code: 'denied',
      message: expect.stringMatching(/DENIED: no pull for you \(no pull secret/),
    })
    answers.shift()
    await expect(attempt()).rejects.toMatchObject({ code: 'unavailable', message: `${r.host}: Bad Gateway` })
    answers.shift()
    await expect(attempt()).rejects.toMatchObject({ code: 'bad-response' })
  })

  const secret = 'node-secret'
  test.each([
    [`role: ${secret}`, '403'],
    [`<html><h1>${secret}</h1></html>`, '403'],
    [JSON.stringify({ token: secret, errors: [{ detail: secret }] }), '403'],
    [JSON.stringify({ errors: [{ code: 'DENIED', message: 'not yours', detail: secret }] }), 'DENIED: not yours'],
    [JSON.stringify({ details: 'incorrect username or password' }), 'incorrect username or password'],
    [JSON.stringify({ errors: [{ code: 'x'.repeat(500) }] }), 'x'.repeat(120)],
  ])(
    'an answer %s of another host, to which a registry sends the agent, is shown as no more than %s',
    async (body, shown) => {
      const [r, other] = [await registry(), await registry()]
      other.intercept = (_request, response) => {
        response.writeHead(403, secret).end(body)
        return true
      }
      const realm = `http://${other.host}/latest/meta-data`
      const ways: readonly [number, Record<string, string>][] = [
        [307, { location: realm }],
        [401, { 'www-authenticate': `Bearer realm="${realm}",service="x"` }],
      ]
      for (const [status, headers] of ways) {
        r.intercept = (_request, response) => {
          response.writeHead(status, headers).end()
          return true
        }
        const attempt = resolveImage(client([plain(r)]), parseReference(`${r.host}/pkg:1`), signal)
        const { message } = await attempt.then(
          () => new Error('it is found'),
          (error: unknown) => error as Error,
        )
        expect(message).toContain(`${other.host}: ${shown} (`)
        expect(message).not.toContain(secret)
      }
    },
  )

  test('an image above the size limit is refused', async () => {
    const r = await registry()
    r.addImage('pkg', '1', layerBytes)
    const c = client([plain(r)])
    const resolved = await resolveImage(c, parseReference(`${r.host}/pkg:1`), signal)
    const { layers } = await selectImage(c, resolved, 'amd64', signal)
    await expect(
      downloadLayers(c, resolved.reference, layers, directory, signal, { downloadBytes: 10 }),
    ).rejects.toMatchObject({
      code: 'too-large',
    })
  })
})

describe('an index', () => {
  test('an index gives the image of the architecture under the digest of the index', async () => {
    const r = await registry()
    const [amd64, arm64] = [r.addImage('pkg', undefined, layerBytes), r.addImage('pkg', undefined, Buffer.from('arm'))]
    const entries = [
      { digest: arm64, size: 1, architecture: 'arm64', variant: 'v8' },
      { digest: amd64, size: 1, architecture: 'amd64' },
    ]
    const digest = r.addManifest('pkg', '1', fakeIndex(entries), ociIndexType)
    const { resolved, image, layers } = await pull(client([plain(r)]), `${r.host}/pkg:1`)
    expect(resolved.digest).toBe(digest)
    expect(image.manifestDigest).toBe(amd64)
    expect(layers).toEqual([layerBytes.toString()])
  })
})

describe('a proxy', () => {
  test('a proxy carries the connection unless NO_PROXY names the host, and its refusal is reported', async () => {
    const r = await registry({ tls: true })
    r.addImage('pkg', '1', layerBytes)
    const tunnels: string[] = []
    let isOpen = true
    const proxy = createServer((socket) => {
      socket.on('error', () => undefined) // either end may close first
      socket.once('data', (head) => {
        const [line = ''] = head.toString().split('\r\n')
        tunnels.push(line)
        if (!isOpen) return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
        const onward = connect(Number(line.split(':')[1]?.split(' ')[0]), '127.0.0.1', () => {
          socket.write('HTTP/1.1 200 OK\r\n\r\n')
          socket.pipe(onward).pipe(socket)
        })
        onward.on('error', () => undefined)
      })
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    opened.push({ close: () => proxy.close() })
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const rules = [{ host: r.host, ca: fakeCaCert }]
    const ask = (environment: Record<string, string>) =>
      resolveImage(client(rules, { proxy: environment }), parseReference(`${r.host}/pkg:1`), signal)

    await expect(ask({ HTTPS_PROXY: address })).resolves.toBeDefined()
    expect(tunnels).toEqual([`CONNECT ${r.host} HTTP/1.1`])
    await expect(ask({ HTTPS_PROXY: address, NO_PROXY: '127.0.0.1' })).resolves.toBeDefined()
    expect(tunnels).toHaveLength(1)
    isOpen = false
    await expect(ask({ HTTPS_PROXY: address })).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/403/),
    })
  })
})
