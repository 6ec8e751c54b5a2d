import { describe, expect, test } from 'vitest'
import { findLogin, type Login, parseDockerConfig } from './credentials.ts'

const auth = (user: string, password = 'p') => ({ auth: Buffer.from(`${user}:${password}`).toString('base64') })
const read = (auths: Record<string, unknown>) => parseDockerConfig(JSON.stringify({ auths }), 'secret ns/pull')
const userOf = (login: Login | undefined) => (login?.kind === 'password' ? login.username : login?.kind)

describe('the login for a repository', () => {
  const credentials = read({
    'r.example': auth('host'),
    'r.example/team': auth('team'),
    'r.example/team/deep': auth('deep'),
    'r.example:5000': auth('port'),
    'https://index.docker.io/v1/': auth('hub'),
    '*.cloud.example': auth('wildcard'),
    'eu-*.part.example/team': auth('part'),
    'Upper.Example:443': auth('upper'),
    'identity.example': { ...auth('00000000-0000-0000-0000-000000000000', ''), identitytoken: 'refresh' },
    'helper.example': {},
  })

  test.each([
    ['r.example', 'a', 'host'],
    ['r.example', 'team/pkg', 'team'],
    ['r.example', 'team', 'team'],
    ['r.example', 'team/deep/pkg', 'deep'],
    ['r.example', 'team-b/pkg', 'host'], // a prefix of characters is not a prefix of components
    ['r.example:443', 'a', 'host'],
    ['R.Example', 'a', 'host'],
    ['upper.example', 'a', 'upper'],
    ['r.example:5000', 'team/pkg', 'port'],
    ['r.example:5001', 'a', undefined],
    ['docker.io', 'library/busybox', 'hub'],
    ['registry-1.docker.io', 'library/busybox', 'hub'],
    ['eu.cloud.example', 'a', 'wildcard'],
    ['a.eu.cloud.example', 'a', undefined],
    ['eu-west.part.example', 'team/pkg', 'part'], // as for the kubelet
    ['us-west.part.example', 'team/pkg', undefined],
    ['identity.example', 'a', 'identity-token'],
    ['helper.example', 'a', undefined],
  ])('the repository %s/%s gets the login %s', (host, repository, user) => {
    expect(userOf(findLogin(credentials, host, repository))).toBe(user)
  })

  test('the first of two secrets with the same key wins', () => {
    const both = [...read({ 'r.example': auth('first') }), ...read({ 'r.example': auth('second') })]
    expect(userOf(findLogin(both, 'r.example', 'a'))).toBe('first')
  })

  test('a password may contain colons, and plain fields take precedence over auth', () => {
    expect(read({ r: auth('u', 'a:b') })[0]?.login).toMatchObject({ username: 'u', password: 'a:b' })
    expect(read({ r: { username: 'x', password: 'y', ...auth('u') } })[0]?.login).toMatchObject({
      username: 'x',
      password: 'y',
    })
  })
})

describe('a secret that cannot be read', () => {
  test.each([
    ['{"auths": {"r": {"auth": "c2VjcmV0"}}}', /"auth" of r/],
    ['{"auths": []}', /no "auths"/],
    ['hunter2', /not JSON/],
  ])('the unreadable secret %s is named by its source, never quoted', (json, expected) => {
    const attempt = () => parseDockerConfig(json, 'secret ns/pull')
    expect(attempt).toThrow(expected)
    expect(attempt).toThrow(/^secret ns\/pull: /)
    expect(attempt).not.toThrow(/hunter2|c2VjcmV0/)
  })
})
