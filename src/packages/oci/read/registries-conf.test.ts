import { expect, test } from 'vitest'
import { fakeSources } from '../../../../test/kit/registry/registry-documents.ts'
import { readEndpoints } from './endpoints.ts'

const path = '/etc/containers/registries.conf'
const crio = { '/run/crio/crio.sock': '' }

const read = async (conf: string, more: Record<string, string> = {}, image = 'r.example/team/pkg') => {
  const [host = '', ...repository] = image.split('/')
  return await readEndpoints(host, fakeSources([], { ...crio, [path]: conf, ...more }), repository.join('/'))
}
const places = async (...parameters: Parameters<typeof read>) =>
  (await read(...parameters)).map(
    ({ base, repository }) => `${base}${repository === undefined ? '' : ` ${repository}`}`,
  )

const mirrored = `
unqualified-search-registries = ["docker.io"] # not for agents: their images have hosts
[[registry]]
prefix = "r.example/team"
location = "r.example/team"
[[registry.mirror]]
location = "m.example:5000/copies"
[[registry.mirror]]
location = "n.example/team"
insecure = true
`

test('mirrors come before the registry, each with its own name of the repository', async () => {
  expect(await places(mirrored)).toEqual([
    'https://m.example:5000/v2 copies/pkg',
    'https://n.example/v2',
    'http://n.example/v2',
    'https://r.example/v2',
  ])
  expect((await read(mirrored)).map(({ trust, namespace }) => [trust.skipVerify, namespace])).toEqual([
    [false, undefined],
    [true, undefined],
    [true, undefined],
    [false, undefined],
  ])
})

test.each([
  ['r.example/team/pkg', 4],
  ['r.example/team', 4],
  ['r.example/team-b/pkg', 1], // whole components
  ['r.example/other', 1],
  ['r.example:5000/team/pkg', 1],
])('the registry of the prefix r.example/team for %s has %i addresses', async (image, addresses) => {
  expect(await places(mirrored, {}, image)).toHaveLength(addresses)
})

test.each([
  ['[[registry]]\nprefix = "*.example"\nlocation = "all.example"', 'r.example/team/pkg', ['https://all.example/v2']],
  ['[[registry]]\nprefix = "*.example"\nlocation = "all.example"', 'a.r.example/pkg', ['https://all.example/v2']],
  ['[[registry]]\nprefix = "*.example"\nlocation = "all.example"', 'example/pkg', ['https://example/v2']],
  ['[[registry]]\nlocation = "r.example"', 'r.example/team/pkg', ['https://r.example/v2']],
  [
    '[[registry]]\nlocation = "r.example"\n[[registry]]\nprefix = "r.example/team"\nlocation = "b.example"',
    'r.example/team/pkg',
    ['https://b.example/v2 pkg'], // the longest
  ],
])('%j leads %s to %j', async (conf, image, expected) => {
  expect(await places(conf, {}, image)).toEqual(expected)
})

test.each([
  ['mirror-by-digest-only = true', '', ['pull']],
  ['', 'pull-from-mirror = "digest-only"', ['pull']],
  ['', 'pull-from-mirror = "all"', ['pull', 'resolve', 'push']],
])('a mirror with %j and %j is asked for %j', async (ofRegistry, ofMirror, expected) => {
  const conf = `[[registry]]\nlocation = "r.example"\n${ofRegistry}\n[[registry.mirror]]\nlocation = "m"\n${ofMirror}\n`
  expect((await read(conf)).map(({ capabilities }) => capabilities)).toEqual([expected, ['pull', 'resolve', 'push']])
})

test('a later file replaces the registry of a prefix', async () => {
  const more = {
    '/etc/containers/registries.conf.d/20-b.conf': '[[registry]]\nprefix = "r.example/team"\nlocation = "b.example/x"',
    '/etc/containers/registries.conf.d/10-a.conf': '[[registry]]\nprefix = "r.example/team"\nlocation = "a.example/x"',
    '/etc/containers/registries.conf.d/30-c.conf.off': '[[registry]]\nprefix = "r.example/team"\nblocked = true',
  }
  expect(await places(mirrored, more)).toEqual(['https://b.example/v2 x/pkg'])
})

test('authorities of a host are those of its folder of certificates', async () => {
  const more = {
    '/etc/containers/certs.d/m.example:5000/ca.crt': 'PEM',
    '/etc/docker/certs.d/n.example/x.crt': 'OTHER',
  }
  expect((await read(mirrored, more)).map(({ trust }) => trust.ca.at(-1))).toEqual(['PEM', 'OTHER', 'OTHER', undefined])
})

test('a blocked registry is not asked', async () => {
  await expect(read('[[registry]]\nlocation = "r.example"\nblocked = true')).rejects.toThrow(
    'r.example: /etc/containers/registries.conf blocks r.example',
  )
})

test('registries and mirrors may be inline tables', async () => {
  const conf = `registry = [
  { prefix = "r.example/team", location = "r.example/team", mirror = [
    { location = "m.example:5000/copies" },
    { location = "n.example/team", insecure = true },
  ] },
]`
  expect(await read(conf)).toEqual(await read(mirrored))
})

test.each([
  ['[[registry]]\nlocation = ', 'line 2: '],
  ['[[registry]]\nlocation = "a"\nlocation = "b"', 'line 3: '],
  ['[[registry]]\nlocation = {}', 'location must be a string, got a table'],
  ['[[registry]]\nlocation = "r.example"\nblocked = "true"', 'blocked must be true or false, got string'],
  ['[registry]\nlocation = "r.example"', 'registry must be a list of tables, got a table'],
  ['[[registry]]\ninsecure = true', 'a [[registry]] has neither prefix nor location'],
])('the file %j is refused with its name and the reason', async (conf, reason) => {
  const refused = expect.stringContaining(`${path}: ${reason}`)
  await expect(read(conf)).rejects.toMatchObject({ code: 'misconfigured', message: refused })
})

test('the file counts only where the host runs CRI-O, and containerd has nothing of its own', async () => {
  const files = { [path]: mirrored }
  expect(await readEndpoints('r.example', fakeSources([], files), 'team/pkg')).toHaveLength(1)
  const both = { ...files, ...crio, '/etc/containerd/certs.d/r.example/hosts.toml': '[host."https://own"]' }
  expect((await readEndpoints('r.example', fakeSources([], both), 'team/pkg')).map(({ base }) => base)).toEqual([
    'https://own/v2',
    'https://r.example/v2',
  ])
})
