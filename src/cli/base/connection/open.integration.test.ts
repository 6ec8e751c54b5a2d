import { chmodSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { configOf, files, folder, machineWith } from '../../../../test/kit/tool/kubeconfig-files.ts'
import { CommandError } from '../framework/command-error.ts'
import { parseGlobals } from '../framework/parse.ts'
import { openConnection } from './open.ts'

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

/** A plugin that returns another token at each call, writes to stderr, and shows its input. */
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

test('a credential plugin gives the token and gets the call, and its messages reach the user', async () => {
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
