import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configOf, files, folder, machineWith } from '../../../../test/kit/tool/kubeconfig-files.ts'
import { CommandError } from '../framework/command-error.ts'
import { parseGlobals } from '../framework/parse.ts'
import { resolveAccess, proxyOfEnvironment } from './kubeconfig.ts'
import { createLibraryCredentials } from './open.ts'

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

describe('A kubeconfig that does not fit is a usage error that lists what is there:', () => {
  const KUBECONFIG = join(files({ a: configOf({}), broken: 'a: [', none: configOf({ current: null }) }), 'a')
  test.each([
    ['--context b', 'no context "b"', 'the kubeconfig has: a'],
    ['--cluster b', 'no cluster "b"', 'the kubeconfig has: a'],
    ['--user b', 'no user "b"', 'the kubeconfig has: a'],
    ['--kubeconfig /not/there', 'there is no file /not/there', undefined],
    [`--kubeconfig ${KUBECONFIG.replace(/a$/, 'broken')}`, 'is not valid', undefined],
    [`--kubeconfig ${KUBECONFIG.replace(/a$/, 'none')}`, 'no current context', 'choose one with --context: a'],
    ['--server other:1', '--server must start with https://', undefined],
    ['--certificate-authority /ca --insecure-skip-tls-verify', 'contradict each other', undefined],
  ])('%s', async (flags, message, remedy) => {
    const error = await errorOf(flags, { KUBECONFIG })
    expect(error.message).toContain(message)
    expect({ code: error.exitCode, remedy: error.remedy }).toEqual({ code: 2, remedy })
  })
})

test('a missing kubeconfig is reported with the ways to give one', async () => {
  expect(await errorOf('', { HOME: folder() })).toMatchObject({ remedy: expect.stringContaining('--kubeconfig') })
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

const proxy = 'http://proxy:3128'

test.each([
  ['https://api.example:6443', { HTTPS_PROXY: proxy }, proxy],
  ['https://api.example:6443', { https_proxy: proxy }, proxy],
  ['https://api.example:6443', { HTTPS_PROXY: 'proxy:3128' }, proxy],
  ['https://api.example:6443', { HTTP_PROXY: proxy }, undefined],
  ['http://api.example', { HTTP_PROXY: proxy }, proxy],
  ['https://127.0.0.1:6443', { HTTPS_PROXY: proxy }, undefined],
  ['https://localhost:6443', { HTTPS_PROXY: proxy }, undefined],
  ['https://[::1]:6443', { HTTPS_PROXY: proxy }, undefined],
  ['https://api.example:6443', { HTTPS_PROXY: proxy, NO_PROXY: '*' }, undefined],
  ['https://api.example:6443', { HTTPS_PROXY: proxy, NO_PROXY: 'other, example' }, undefined],
  ['https://api.example:6443', { HTTPS_PROXY: proxy, NO_PROXY: '.example' }, undefined],
  ['https://api.example:6443', { HTTPS_PROXY: proxy, no_proxy: 'api.example:6443' }, undefined],
  ['https://api.example:6443', { HTTPS_PROXY: proxy, NO_PROXY: 'api.example:443' }, proxy],
  ['https://api.example', { HTTPS_PROXY: proxy, NO_PROXY: 'api.example:443' }, undefined],
  ['https://myapi.example:6443', { HTTPS_PROXY: proxy, NO_PROXY: 'api.example' }, proxy],
  ['https://10.1.2.3:6443', { HTTPS_PROXY: proxy, NO_PROXY: '10.0.0.0/8' }, undefined],
  ['https://11.1.2.3:6443', { HTTPS_PROXY: proxy, NO_PROXY: '10.0.0.0/8' }, proxy],
])('the proxy for %s under %o is %s', (server, environment, expected) => {
  expect(proxyOfEnvironment(server, environment)).toBe(expected)
})
