import { beforeEach, expect, test } from 'vitest'
import { parseProviderConfig } from './config.ts'
import { createCredentialProviders, type ProviderSource } from './provide.ts'

const apiVersion = 'credentialprovider.kubelet.k8s.io/v1'
const { signal } = new AbortController()
let nowMs = 0
let runs: string[] = []
let answers: Record<string, object | Error> = {}
let fingerprint = 'one'

beforeEach(() => {
  nowMs = 0
  runs = []
  answers = {}
  fingerprint = 'one'
})

const entry = (name: string, more: object = {}): object => {
  return { name, apiVersion, matchImages: ['*.example'], defaultCacheDuration: '10m', ...more }
}

const answer = (username: string, more: object = {}): object => {
  const auth = { '*.example': { username, password: 'hunter2' } }
  return { kind: 'CredentialProviderResponse', apiVersion, cacheKeyType: 'Registry', auth, ...more }
}

function logins(...entries: object[]): ReturnType<typeof createCredentialProviders> {
  const document = { kind: 'CredentialProviderConfig', apiVersion: 'kubelet.config.k8s.io/v1', providers: entries }
  return createCredentialProviders({
    clock: { monotonicMs: () => nowMs },
    open: async (): Promise<ProviderSource> => ({
      providers: parseProviderConfig([{ path: 'f', document }]),
      fingerprint,
      async run({ name }, request) {
        runs.push(`${name} ${(JSON.parse(request) as { image: string }).image}`)
        const given = answers[name]
        if (given === undefined || given instanceof Error) throw given ?? new Error('no answer')
        return JSON.stringify(given)
      },
    }),
  })
}

const names = ({ logins }: Awaited<ReturnType<ReturnType<typeof createCredentialProviders>['loginsOf']>>) =>
  logins.map((login) => (login.kind === 'password' ? login.username : ''))

test.each([
  ['Image', ['p r.example/a', 'p r.example/b', 'p s.example/a']],
  ['Registry', ['p r.example/a', 'p s.example/a']],
  ['Global', ['p r.example/a']],
])('an answer of cacheKeyType %s spares the plugin for what it covers', async (cacheKeyType, expected) => {
  answers = { p: answer('u', { cacheKeyType }) }
  const provider = logins(entry('p'))
  for (const image of ['r.example/a', 'r.example/a', 'r.example/b', 's.example/a'])
    expect(names(await provider.loginsOf(image, signal))).toEqual(['u'])
  expect(runs).toEqual(expected)
})

test('an answer counts until its time is over', async () => {
  answers = { p: answer('u', { cacheDuration: '1m' }) }
  const provider = logins(entry('p'))
  for (nowMs of [0, 59_999, 60_000, 60_001]) await provider.loginsOf('r.example/a', signal)
  expect(runs).toHaveLength(2)
})

test.each([
  ['its own cacheDuration is 0', {}, { cacheDuration: '0s' }],
  ['it has none and the default is 0', { defaultCacheDuration: '0s' }, {}],
])('an answer is not kept when %s', async (_, config, more) => {
  answers = { p: answer('u', more) }
  const provider = logins(entry('p', config))
  await provider.loginsOf('r.example/a', signal)
  await provider.loginsOf('r.example/a', signal)
  expect(runs).toHaveLength(2)
})

test('a refused login is asked for again', async () => {
  answers = { p: answer('old') }
  const provider = logins(entry('p'))
  await provider.loginsOf('r.example/a', signal)
  provider.forget('r.example/b') // both images are in the registry that refused the login
  answers = { p: answer('new') }
  expect(names(await provider.loginsOf('r.example/a', signal))).toEqual(['new'])
})

test('an answer of another configuration does not count', async () => {
  answers = { p: answer('old') }
  const provider = logins(entry('p'))
  await provider.loginsOf('r.example/a', signal)
  fingerprint = 'two'
  answers = { p: answer('new') }
  expect(names(await provider.loginsOf('r.example/a', signal))).toEqual(['new'])
})

test('a plugin runs once for those who ask at the same time', async () => {
  answers = { p: answer('u', { cacheDuration: '0s' }) }
  const provider = logins(entry('p'))
  await Promise.all([provider.loginsOf('r.example/a', signal), provider.loginsOf('r.example/a', signal)])
  expect(runs).toHaveLength(1)
})

test('all matching providers are asked, and one that fails costs only its own logins', async () => {
  answers = { broken: new Error('it ended with exit code 1'), second: answer('u2'), third: answer('u3') }
  const others = entry('elsewhere', { matchImages: ['elsewhere.example'] })
  const provider = logins(entry('broken'), entry('second'), others, entry('third'))
  expect(await provider.loginsOf('r.example/a', signal)).toMatchObject({
    logins: [{ username: 'u2' }, { username: 'u3' }],
    providers: ['broken', 'second', 'third'],
    problems: ['broken: it ended with exit code 1'],
  })
})

test('a provider that needs the token of a ServiceAccount is not asked, and named', async () => {
  const provider = logins(entry('p', { tokenAttributes: { requireServiceAccount: true } }))
  const { logins: none, problems } = await provider.loginsOf('r.example/a', signal)
  expect(none).toEqual([])
  expect(problems).toEqual([expect.stringContaining('tokenAttributes')])
  expect(runs).toEqual([])
})

test('a configuration that cannot be read is a problem, not an error', async () => {
  const provider = createCredentialProviders({
    clock: { monotonicMs: () => 0 },
    open: () => Promise.reject(new Error('/etc/x: has no providers')),
  })
  expect(await provider.loginsOf('r.example/a', signal)).toEqual({
    logins: [],
    providers: [],
    problems: ['/etc/x: has no providers'],
  })
})
