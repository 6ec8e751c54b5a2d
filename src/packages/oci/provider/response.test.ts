import { expect, test } from 'vitest'
import { parseProviderConfig } from './config.ts'
import { cacheKeys, formatRequest, loginsFor, parseResponse } from './provide.ts'

const apiVersion = 'credentialprovider.kubelet.k8s.io/v1'
const document = {
  apiVersion: 'kubelet.config.k8s.io/v1',
  kind: 'CredentialProviderConfig',
  providers: [{ name: 'p', apiVersion, matchImages: ['*'], defaultCacheDuration: '10m' }],
}
const provider = () => parseProviderConfig([{ path: 'f', document }])[0] ?? expect.unreachable()
const image = 'r.example:5000/team/pkg'
const answer = {
  kind: 'CredentialProviderResponse',
  apiVersion,
  cacheKeyType: 'Registry',
  auth: { 'r.example:5000': { username: 'u', password: 'hunter2' } },
}
const parse = (more: object) => parseResponse(JSON.stringify({ ...answer, ...more }), provider(), image)

test('a request names the image in the version of the plugin', () => {
  expect(JSON.parse(formatRequest(provider(), image))).toEqual({ kind: 'CredentialProviderRequest', apiVersion, image })
})

test.each([
  ['Image', `image ${image}`],
  ['Registry', 'registry r.example:5000'],
  ['Global', 'global'],
])('an answer of cacheKeyType %s is kept under %j', (cacheKeyType, expected) => {
  expect(parse({ cacheKeyType }).cacheKey).toBe(expected)
  expect([...cacheKeys(image).values()]).toContain(expected)
})

test.each([
  [undefined, 600_000],
  [null, 600_000],
  ['0s', 0],
  ['-1m', 0],
  ['1h30m', 5_400_000],
])('an answer with the cacheDuration %j is kept for %j ms', (cacheDuration, expected) => {
  expect(parse({ cacheDuration }).cacheMs).toBe(expected)
})

test.each<[what: string, more: object, message: string]>([
  ['another kind', { kind: 'CredentialProviderRequest' }, 'not a CredentialProviderResponse'],
  ['another version than the request', { apiVersion: `${apiVersion}beta1` }, 'must have the apiVersion'],
  ['no cacheKeyType', { cacheKeyType: undefined }, 'cacheKeyType'],
  ['a cacheKeyType of the language', { cacheKeyType: 'toString' }, 'cacheKeyType'],
  ['a number for cacheDuration', { cacheDuration: 5 }, 'cacheDuration'],
])('an answer with %s is refused without a word of it', (_, more, message) => {
  expect(() => parse(more)).toThrow(message)
  expect(() => parse(more)).not.toThrow('hunter2')
})

test('an answer that is not JSON is refused without a word of it', () => {
  const text = `${JSON.stringify(answer)} and more`
  expect(() => parseResponse(text, provider(), image)).toThrow('not a CredentialProviderResponse')
  expect(() => parseResponse(text, provider(), image)).not.toThrow('hunter2')
})

test('an answer may have no logins', () => {
  expect(parse({ auth: null }).logins).toEqual([])
})

test('logins are tried from the longest key to the shortest, of equals in the order of the providers', () => {
  const login = (username: string) => ({ kind: 'password', username, password: 'x' }) as const
  const logins = loginsFor(image, [
    { key: '*.example:5000', login: login('glob') },
    { key: 'r.example:5000', login: login('host') },
    { key: 'r.example:5000/team', login: login('team') },
    { key: 'r.example:5000/team', login: login('team of the second') },
    { key: 'r.example:5000/other', login: login('other') },
    { key: 'r.example', login: login('other port') },
  ])
  expect(logins.map((one) => (one.kind === 'password' ? one.username : ''))).toEqual([
    'team',
    'team of the second',
    'host',
    'glob',
  ])
})
