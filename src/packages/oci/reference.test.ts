import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatReference, matchLength, packageReference, parseReference } from './reference.ts'

const sha256Digest = `sha256:${'ab'.repeat(32)}`

describe('a reference as people write it', () => {
  test.each([
    ['registry.example:5000/team/pkg:1.2.3', { host: 'registry.example:5000', repository: 'team/pkg', tag: '1.2.3' }],
    ['10.88.0.1:5443/pkg', { host: '10.88.0.1:5443', repository: 'pkg' }],
    ['[fd00::1]:5000/pkg:1', { host: '[fd00::1]:5000', repository: 'pkg', tag: '1' }],
    ['localhost/pkg', { host: 'localhost', repository: 'pkg' }],
    ['busybox', { host: 'docker.io', repository: 'library/busybox' }],
    ['team/pkg:2', { host: 'docker.io', repository: 'team/pkg', tag: '2' }],
    ['docker.io/busybox', { host: 'docker.io', repository: 'library/busybox' }],
    ['index.docker.io/a/b', { host: 'docker.io', repository: 'a/b' }],
    ['localhost:5000', { host: 'docker.io', repository: 'library/localhost', tag: '5000' }], // no slash: that is a tag
    [`ghcr.io/a/b@${sha256Digest}`, { host: 'ghcr.io', repository: 'a/b', digest: sha256Digest }],
    [`ghcr.io/a/b:1@${sha256Digest}`, { host: 'ghcr.io', repository: 'a/b', tag: '1', digest: sha256Digest }],
  ])('the reference %s is parsed by docker rules', (text, expected) => {
    expect(parseReference(text)).toEqual(expected)
  })

  test.each([
    '',
    '/',
    'Team/Pkg',
    'a//b',
    'a/../b',
    'host.io/',
    'host.io/a:',
    'host.io/a:b c',
    'host.io/a@sha256:12',
    `a@${sha256Digest}@${sha256Digest}`,
    'ho_st.io/a',
    'host.io:port/a',
  ])('the malformed reference %j is refused', (text) => {
    expect(() => parseReference(text)).toThrow(expect.objectContaining({ code: 'bad-reference' }))
  })

  test('formatting and parsing a reference gives the same reference', () => {
    const name = fc.stringMatching(/^[a-z0-9]+([.-][a-z0-9]+){0,3}$/)
    const reference = fc.record(
      {
        host: fc.constantFrom('r.example', 'r.example:5000', '127.0.0.1:1'),
        repository: name,
        tag: fc.stringMatching(/^[\w][\w.-]{0,20}$/),
      },
      { requiredKeys: ['host', 'repository'] },
    )
    fc.assert(
      fc.property(reference, (one) => {
        expect(parseReference(formatReference(one))).toEqual(one)
      }),
    )
  })
})

describe('the reference of a package', () => {
  test('a package reference is repository and version, and a tag in image does not count', () => {
    expect(formatReference(packageReference('r.example:5000/a/b:latest', '1.2.3'))).toBe('r.example:5000/a/b:1.2.3')
  })

  test('a package reference uses containerSHA where it is given, whatever the version', () => {
    expect(formatReference(packageReference('r.example/a', '1.0.0+build', sha256Digest))).toBe(
      `r.example/a@${sha256Digest}`,
    )
  })

  test('a version with build metadata requires containerSHA', () => {
    expect(() => packageReference('r.example/a', '1.0.0+build')).toThrow(/set containerSHA/)
  })

  test('a malformed containerSHA or a digest in image is refused', () => {
    expect(() => packageReference('r.example/a', '1', 'sha256:xyz')).toThrow(/containerSHA/)
    expect(() => packageReference(`r.example/a@${sha256Digest}`, '1')).toThrow(/belongs in containerSHA/)
  })
})

test.each([
  ['r.example', 'r.example/team/pkg', true],
  ['https://r.example', 'r.example/team/pkg', true],
  ['r.example', 'other.example/team/pkg', false],
  ['r.example', 'a.r.example/pkg', false],
  ['*.example', 'r.example/pkg', true],
  ['*.example', 'a.r.example/pkg', false], // one label for each asterisk
  ['*.*.example', 'a.r.example/pkg', true],
  ['*.dkr.ecr.*.amazonaws.com', '123456789012.dkr.ecr.us-east-1.amazonaws.com/pkg', true],
  ['*.dkr.ecr.*.amazonaws.com.cn', '123456789012.dkr.ecr.us-east-1.amazonaws.com/pkg', false],
  ['reg*.example', 'registry.example/pkg', true],
  ['reg*y.example', 'reg.example/pkg', false],
  ['r.*', 'r.example/pkg', true],
  ['r.ex.mple', 'r.example/pkg', false], // a dot is literal
  ['*', 'localhost/pkg', true],
  ['r.example:5000', 'r.example:5000/pkg', true],
  ['r.example:5000', 'r.example/pkg', false],
  ['r.example', 'r.example:5000/pkg', false],
  ['r.example:*', 'r.example:5000/pkg', false], // no globs in ports
  ['r.example/team', 'r.example/team/pkg', true],
  ['r.example/team', 'r.example/team-b/pkg', true], // as in the kubelet: a prefix of the path, not of a component
  ['r.example/team/', 'r.example/team-b/pkg', false],
  ['r.example/*', 'r.example/team/pkg', false], // nor in paths
  ['[fd00::1]:5000', '[fd00::1]:5000/pkg', true],
  ['', 'r.example/pkg', false],
])('the pattern %j of a kubelet and the image %s match: %j', (pattern, image, expected) => {
  expect(matchLength(pattern, 'matchImages', image) > 0).toBe(expected)
})

test.each([
  ['r.example/team', 'r.example/team/pkg', 'r.example/team'],
  ['r.example/team', 'r.example/team-b/pkg', ''],
  ['reg*.example', 'registry.example/pkg', 'registry.example'],
  ['*.example', 'a.r.example/pkg', ''],
  ['r.example', 'r.example:5000/pkg', ''],
])('the key %j of a pull Secret covers of the image %s: %j', (pattern, image, expected) => {
  expect(image.slice(0, matchLength(pattern, 'dockerConfig', image))).toBe(expected)
})

test.each([
  ['*.example', 'a.r.example/team/pkg', 'a.r.example'],
  ['*.example/team', 'r.example/team/pkg', 'r.example/team'],
  ['*.example', 'example/pkg', ''],
  ['*.example', 'r.example/a.example/pkg', 'r.example'], // the shortest match
  ['*', 'r.example/pkg', ''],
  ['a*.example', 'ab.example/pkg', ''],
  ['r.example/team', 'r.example/team-b/pkg', ''],
])('the prefix %j of registries.conf covers of %s %j', (pattern, image, expected) => {
  expect(image.slice(0, matchLength(pattern, 'registriesConf', image))).toBe(expected)
})
