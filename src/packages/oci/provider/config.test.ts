import { expect, test } from 'vitest'
import { parseProviderConfig } from './config.ts'

const provider = {
  name: 'ecr',
  apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
  matchImages: ['*.dkr.ecr.*.amazonaws.com'],
  defaultCacheDuration: '12h',
}
const file = (providers: unknown, more: object = {}): { path: string; document: unknown } => ({
  path: '/etc/config.yaml',
  document: { apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig', providers, ...more },
})

test('a provider has what the kubelet needs of it', () => {
  const more = { args: ['--region', 'x'], env: [{ name: 'AWS_PROFILE', value: 'pull' }], fieldOfLater: 1 }
  expect(parseProviderConfig([file([{ ...provider, ...more }])])).toMatchObject([
    {
      name: 'ecr',
      defaultCacheMs: 12 * 3_600_000,
      args: ['--region', 'x'],
      env: { AWS_PROFILE: 'pull' },
      needsServiceAccount: false,
    },
  ])
})

test.each(['v1', 'v1beta1', 'v1alpha1'])(
  'a configuration of version %s is taken, for plugins of the same',
  (version) => {
    const one = { ...provider, apiVersion: `credentialprovider.kubelet.k8s.io/${version}` }
    const config = file([one], { apiVersion: `kubelet.config.k8s.io/${version}` })
    expect(parseProviderConfig([config])).toMatchObject([{ apiVersion: one.apiVersion }])
  },
)

test('the providers of several files keep their order', () => {
  expect(parseProviderConfig([file([provider]), file([{ ...provider, name: 'gcr' }])]).map(({ name }) => name)).toEqual(
    ['ecr', 'gcr'],
  )
})

test.each([
  [{ serviceAccountTokenAudience: 'a', requireServiceAccount: true }, true],
  [{ serviceAccountTokenAudience: 'a' }, true],
  // the kubelet calls it for pods without a ServiceAccount, too, and then passes no token
  [{ serviceAccountTokenAudience: 'a', requireServiceAccount: false }, false],
])('a provider with the tokenAttributes %j needs a ServiceAccount: %j', (tokenAttributes, expected) => {
  expect(parseProviderConfig([file([{ ...provider, tokenAttributes }])])[0]?.needsServiceAccount).toBe(expected)
})

test.each<[field: string, more: object, message: string]>([
  ['no name', { name: undefined }, 'name must be'],
  ['a path for a name', { name: '../ecr' }, 'name must be'],
  ['the name of a folder', { name: '..' }, 'name must be'],
  ['another apiVersion', { apiVersion: 'credentialprovider.kubelet.k8s.io/v2' }, 'apiVersion must be'],
  ['no images', { matchImages: [] }, 'matchImages is empty'],
  ['an image that is not an address', { matchImages: ['a b'] }, 'a b is not the address'],
  ['no cache duration', { defaultCacheDuration: undefined }, 'defaultCacheDuration must be'],
  ['a negative cache duration', { defaultCacheDuration: '-1s' }, 'defaultCacheDuration must be'],
  ['a number for an argument', { args: [1] }, 'args must be'],
  ['a variable without value', { env: [{ name: 'A' }] }, 'env must have'],
])('a provider with %s is refused', (_, more, message) => {
  expect(() => parseProviderConfig([file([{ ...provider, ...more }])])).toThrow(message)
})

test.each<[what: string, files: { path: string; document: unknown }[], message: string]>([
  ['another kind', [file([provider], { kind: 'KubeletConfiguration' })], '/etc/config.yaml: must be of kind'],
  ['another apiVersion', [file([provider], { apiVersion: 'v1' })], 'apiVersion must be'],
  ['no providers', [file([])], 'has no providers'],
  ['a name twice', [file([provider]), file([provider])], 'ecr is listed twice'],
])('a configuration with %s is refused', (_, files, message) => {
  expect(() => parseProviderConfig(files)).toThrow(message)
})
