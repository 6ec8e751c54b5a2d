import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock, systemRandom } from '../../daemon/platform/system-clock.ts'
import { CommandError } from '../framework/command-error.ts'
import type { Machine } from '../framework/machine.ts'
import { parseGlobals } from '../framework/parse.ts'
import { resolveAccess } from './kubeconfig.ts'
import { createLibraryCredentials } from './library-credentials.ts'
import { openConnection } from './open.ts'

type Config = {
  readonly name?: string
  readonly server?: string
  readonly user?: object
  readonly current?: string | null
}

/** A kubeconfig of one cluster, one user and one context, all of the same name. */
function configOf(config: Config): string {
  const { name = 'a', server = `https://${name}:6443`, user = { token: `token-${name}` }, current = name } = config
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': current ?? undefined,
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  })
}

function machineWith(environment: Readonly<Record<string, string>> = {}): Machine & { readonly errors: () => string } {
  let stderr = ''
  const output = { isTerminal: false, hasColor: false, columns: () => undefined }
  return {
    stdout: { ...output, write: () => {} },
    stderr: { ...output, write: (text) => (stderr += text) },
    stdin: { isTerminal: false, readLine: () => Promise.resolve(undefined), readAll: () => Promise.resolve('') },
    environment,
    clock: systemClock,
    random: systemRandom,
    signal: new AbortController().signal,
    readFile: (path) =>
      new Promise((resolve, reject) => {
        try {
          resolve(readFileSync(path, 'utf8'))
        } catch (error) {
          reject(error as Error)
        }
      }),
    errors: () => stderr,
  }
}

const folder = (): string => mkdtempSync(join(tmpdir(), 'kubeconfig-'))

function files(texts: Readonly<Record<string, string>>): string {
  const place = folder()
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(place, name), text)
  return place
}

const access = async (flags: string, environment: Readonly<Record<string, string>> = {}) =>
  await resolveAccess(parseGlobals(flags.split(' ').filter(Boolean)), machineWith(environment))

const errorOf = async (flags: string, environment: Readonly<Record<string, string>> = {}): Promise<CommandError> => {
  const error: unknown = await access(flags, environment).catch((caught: unknown) => caught)
  if (error instanceof CommandError) return error
  throw new Error(`accepted: ${flags}`)
}

test('the kubeconfig is the flag, else the list in KUBECONFIG, else the one in the home', async () => {
  const place = files({ a: configOf({}), b: configOf({ name: 'b' }) })
  mkdirSync(join(place, '.kube'))
  writeFileSync(join(place, '.kube', 'config'), configOf({ name: 'home' }))
  const KUBECONFIG = join(place, 'a')
  expect(await access(`--kubeconfig ${place}/b`, { KUBECONFIG })).toMatchObject({ contextName: 'b' })
  expect(await access('', { KUBECONFIG, HOME: place })).toMatchObject({ contextName: 'a' })
  expect(await access('', { HOME: place })).toMatchObject({ contextName: 'home' })
})

test('the first kubeconfig of a list with a name decides, and missing files are left out', async () => {
  const place = files({
    one: configOf({ name: 'a', server: 'https://first', current: null }),
    two: configOf({ name: 'a', server: 'https://second', current: null }),
    three: configOf({ name: 'c' }),
  })
  const KUBECONFIG = [`${place}/missing`, `${place}/one`, `${place}/two`, `${place}/three`].join(':')
  expect(await access('--context a', { KUBECONFIG })).toMatchObject({ cluster: { server: 'https://first' } })
  expect(await access('', { KUBECONFIG })).toMatchObject({ contextName: 'c' })
})

test('flags choose the cluster, the user and the server', async () => {
  const KUBECONFIG = ['a', 'b'].map((name) => join(files({ [name]: configOf({ name }) }), name)).join(':')
  const chosen = await access('--context a --cluster b --user b', { KUBECONFIG })
  expect(chosen).toMatchObject({ cluster: { server: 'https://b:6443' }, user: { token: 'token-b' } })
  expect(await access('--server https://other:1/', { KUBECONFIG })).toMatchObject({
    cluster: { server: 'https://other:1' },
    user: { token: 'token-a' },
  })
  expect(await access('--server https://other:1 --token mine')).toMatchObject({ user: { token: 'mine' } })
})

test("a flag's credentials take the place of the kubeconfig's plugin", async () => {
  const KUBECONFIG = join(files({ a: configOf({ user: { exec: { command: 'login' } } }) }), 'a')
  expect((await access('', { KUBECONFIG })).exec).toEqual({ command: 'login' })
  expect((await access('--token mine', { KUBECONFIG })).exec).toBeUndefined()
})

describe('A kubeconfig that does not fit is a usage error that says what is there:', () => {
  const KUBECONFIG = join(files({ a: configOf({}), broken: 'a: [', none: configOf({ current: null }) }), 'a')
  test.each([
    ['--context b', 'no context "b"', 'the kubeconfig has: a'],
    ['--cluster b', 'no cluster "b"', 'the kubeconfig has: a'],
    ['--user b', 'no user "b"', 'the kubeconfig has: a'],
    ['--kubeconfig /not/there', 'there is no file /not/there', undefined],
    [`--kubeconfig ${KUBECONFIG.replace(/a$/, 'broken')}`, 'is not valid', undefined],
    [`--kubeconfig ${KUBECONFIG.replace(/a$/, 'none')}`, 'no current context', 'choose one with --context: a'],
    ['--server other:1', '--server must begin with https://', undefined],
    ['--certificate-authority /ca --insecure-skip-tls-verify', 'contradict each other', undefined],
  ])('%s', async (flags, message, remedy) => {
    const error = await errorOf(flags, { KUBECONFIG })
    expect(error.message).toContain(message)
    expect({ code: error.exitCode, remedy: error.remedy }).toEqual({ code: 2, remedy })
  })
})

test('no kubeconfig at all is told with the ways to give one', async () => {
  expect(await errorOf('', { HOME: folder() })).toMatchObject({ remedy: expect.stringContaining('--kubeconfig') })
})

type Received = { readonly url: string; readonly headers: Readonly<Record<string, string | string[] | undefined>> }

/** A server that notes what comes and answers with a list of DaemonSets; 401 to the tokens named. Streams stay open. */
async function startServer(refused: readonly string[] = []) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const token = request.headers.authorization ?? ''
    received.push({ url: request.url ?? '', headers: request.headers })
    if (request.url?.includes('follow=')) return response.writeHead(200).flushHeaders()
    response.writeHead(refused.includes(token) ? 401 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ items: [{ metadata: { name: 'skyhookd', namespace: 'hosts' } }] }))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received }
}

/** What the server saw of one request under these flags and this user. */
async function requestOf(
  flags: string,
  user: object,
  environment: Readonly<Record<string, string>> = {},
  refused: string[] = [],
) {
  const { url, received } = await startServer(refused)
  const place = files({ config: configOf({ server: url, user }) })
  const machine = machineWith({ PATH: '/usr/bin:/bin', ...environment, KUBECONFIG: join(place, 'config') })
  const { transport, agentNamespace } = await openConnection(parseGlobals(flags.split(' ').filter(Boolean)), machine)
  onTestFinished(() => transport.close())
  const namespace = await agentNamespace()
  return { namespace, headers: received.at(-1)?.headers ?? {}, received, machine }
}

test('requests go below the path of the server', async () => {
  const { url, received } = await startServer()
  const place = files({ config: configOf({ server: `${url}/k8s/clusters/c-1/` }) })
  const { transport } = await openConnection(parseGlobals([]), machineWith({ KUBECONFIG: join(place, 'config') }))
  onTestFinished(() => transport.close())
  await transport.json('GET', '/version')
  expect(received.map((one) => one.url)).toEqual(['/k8s/clusters/c-1/version'])
})

test('requests carry the token, and the tool as their field manager', async () => {
  const { headers } = await requestOf('', { token: 'secret' })
  expect(headers).toMatchObject({
    authorization: 'Bearer secret',
    'user-agent': expect.stringMatching(/^kubectl-skyhook\//),
  })
})

test('a token in a file beside the kubeconfig is read', async () => {
  const { url, received } = await startServer()
  const place = files({ config: configOf({ server: url, user: { tokenFile: 'token' } }), token: 'from-file' })
  const { transport } = await openConnection(parseGlobals([]), machineWith({ KUBECONFIG: join(place, 'config') }))
  onTestFinished(() => transport.close())
  await transport.json('GET', '/version')
  expect(received[0]?.headers).toMatchObject({ authorization: 'Bearer from-file' })
})

test('a user name and a password are sent as basic authentication', async () => {
  const { headers } = await requestOf('--username me --password secret', {})
  expect(headers['authorization']).toBe(`Basic ${Buffer.from('me:secret').toString('base64')}`)
})

test('--as impersonates with groups, UID and extra fields', async () => {
  const flags = '--as jane --as-group a --as-group b --as-uid 7 --as-user-extra example.org/scope=x'
  const { headers } = await requestOf(flags, { token: 'secret' })
  expect(headers).toMatchObject({
    'impersonate-user': 'jane',
    'impersonate-group': 'a, b',
    'impersonate-uid': '7',
    'impersonate-extra-example.org%2fscope': 'x',
  })
})

test('a kubeconfig may impersonate, and --as takes its place as a whole', async () => {
  const user = { token: 'secret', as: 'jane', 'as-groups': ['a'] }
  expect((await requestOf('', user)).headers).toMatchObject({ 'impersonate-user': 'jane', 'impersonate-group': 'a' })
  const { headers } = await requestOf('--as joe', user)
  expect(headers['impersonate-user']).toBe('joe')
  expect(headers).not.toHaveProperty('impersonate-group')
})

test('groups without a user to act as are refused', async () => {
  await expect(requestOf('--as-group admins', { token: 'secret' })).rejects.toThrow('--as-group needs --as USER')
})

/** A plugin that gives another token at each call, says something on stderr and shows what it was told. */
const plugin = `#!/bin/sh
echo "logging in" >&2
n=$(cat "$(dirname "$0")/count" 2>/dev/null || echo 0)
echo $((n + 1)) > "$(dirname "$0")/count"
echo "$KUBERNETES_EXEC_INFO" > "$(dirname "$0")/info"
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$1-$n'"}}'
`

function pluginFolder(script = plugin): string {
  const place = files({ login: script })
  chmodSync(join(place, 'login'), 0o755)
  return place
}

test('a credential plugin gives the token, is told about the call, and its words reach the person', async () => {
  const place = pluginFolder()
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: join(place, 'login'), args: ['token'] }
  const { headers, machine } = await requestOf('', { exec })
  expect(headers['authorization']).toBe('Bearer token-0')
  expect(machine.errors()).toBe('logging in\n')
  const info = JSON.parse(readFileSync(join(place, 'info'), 'utf8')) as object
  expect(info).toMatchObject({ kind: 'ExecCredential', spec: { interactive: false } })
})

test('a plugin is asked again when its token is refused', async () => {
  const exec = { command: join(pluginFolder(), 'login'), args: ['token'] }
  const { headers, received } = await requestOf('', { exec }, {}, ['Bearer token-0'])
  expect(headers['authorization']).toBe('Bearer token-1')
  expect(received).toHaveLength(2)
})

test.each([
  [
    'a plugin that is not installed',
    { command: '/not/there/login', installHint: 'install it from here' },
    'install it from here',
  ],
  ['a plugin that fails', { command: '/bin/sh', args: ['-c', 'echo no session >&2; exit 3'] }, undefined],
  ['a plugin that has to ask', { command: '/bin/true', interactiveMode: 'Always' }, undefined],
])('%s is named in the error', async (_, exec, remedy) => {
  const error: unknown = await requestOf('', { exec }).catch((caught: unknown) => caught)
  expect(error).toBeInstanceOf(CommandError)
  expect(error).toMatchObject({ message: expect.stringContaining(exec.command), remedy })
})

/** A proxy that notes which hosts it is asked for, and connects all of them with one server. */
async function startProxy(serverUrl: string) {
  const asked: string[] = []
  const proxy = createServer().on('connect', ({ url = '' }: IncomingMessage, client: Socket) => {
    asked.push(url)
    const upstream = connect(Number(new URL(serverUrl).port), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n')
      upstream.pipe(client)
      client.pipe(upstream)
    })
    client.on('close', () => upstream.destroy())
  })
  await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void proxy.close())
  return { asked, proxyUrl: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` }
}

test('streams and calls through a proxy do not wait for each other', async () => {
  const { url, received } = await startServer()
  const { asked, proxyUrl } = await startProxy(url)
  const KUBECONFIG = join(files({ config: configOf({ server: 'http://cluster.example:8080' }) }), 'config')
  const flags = parseGlobals(['--proxy-url', proxyUrl])
  const { transport } = await openConnection(flags, machineWith({ KUBECONFIG }))
  onTestFinished(() => transport.close())
  for (let n = 1; n <= 9; n++) await transport.stream('/log', { query: { follow: true }, timeoutMs: 1_000 })
  for (let n = 1; n <= 2; n++) await transport.json('GET', '/version', { timeoutMs: 1_000 })
  expect([received.length, asked.length]).toEqual([11, 10]) // the calls share a connection
})

test('connections through a proxy present the certificates of the kubeconfig and trust its CA', async () => {
  const [ca, cert, key] = ['ca', 'cert', 'key'].map((text) => Buffer.from(text).toString('base64'))
  const user = { 'client-certificate-data': cert, 'client-key-data': key }
  const config = JSON.parse(configOf({ user })) as { clusters: [{ cluster: object }] }
  Object.assign(config.clusters[0].cluster, { 'certificate-authority-data': ca, 'proxy-url': 'http://proxy:3128' })
  const KUBECONFIG = join(files({ config: JSON.stringify(config) }), 'config')
  const machine = machineWith({ KUBECONFIG })
  const credentials = createLibraryCredentials(await resolveAccess(parseGlobals([]), machine), machine)
  const { agents } = await credentials.current()
  for (const agent of [agents?.calls, agents?.streams]) {
    const { options } = agent as unknown as { readonly options: Readonly<Record<string, unknown>> }
    expect(['ca', 'cert', 'key'].map((name) => String(options[name]))).toEqual(['ca', 'cert', 'key'])
  }
  expect((await credentials.current({ forceRefresh: true })).agents).toBe(agents)
})

test('reads at the same time agree on the connections through a proxy', async () => {
  const machine = machineWith({ KUBECONFIG: join(files({ config: configOf({}) }), 'config') })
  const access = await resolveAccess(parseGlobals(['--proxy-url', 'http://proxy:3128']), machine)
  const credentials = createLibraryCredentials(access, machine)
  const identities = await Promise.all(Array.from({ length: 3 }, () => credentials.current()))
  expect(new Set(identities.map(({ agents }) => agents)).size).toBe(1)
  expect(identities.map(({ tlsRevision }) => tlsRevision)).toEqual([1, 1, 1])
})

test('requests go through the proxy of the kubeconfig, of --proxy-url, or of the environment', async () => {
  const target = await startServer()
  const { asked, proxyUrl } = await startProxy(target.url)
  const config = configOf({ server: 'http://cluster.example:8080' })
  const KUBECONFIG = join(files({ config }), 'config')
  const ask = async (flags: string, environment: Readonly<Record<string, string>>) => {
    const { transport } = await openConnection(
      parseGlobals(flags.split(' ').filter(Boolean)),
      machineWith({ ...environment, KUBECONFIG }),
    )
    onTestFinished(() => transport.close())
    await transport.json('GET', '/version')
  }
  await ask(`--proxy-url ${proxyUrl}`, {})
  await ask('', { HTTP_PROXY: proxyUrl })
  expect(asked).toEqual(['cluster.example:8080', 'cluster.example:8080'])
  expect(target.received).toHaveLength(2)
})

test('the namespace is the flag, else that of the DaemonSet', async () => {
  expect((await requestOf('', { token: 'x' })).namespace).toBe('hosts')
  const { url } = await startServer()
  const flags = parseGlobals(['--server', url, '-n', 'mine'])
  const { agentNamespace, transport } = await openConnection(flags, machineWith({ HOME: folder() }))
  onTestFinished(() => transport.close())
  expect(await agentNamespace()).toBe('mine')
})
