import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { leftOut, maskLikelySecrets, createRedactor, literalsOf } from './redact.ts'

const redact = <T>(object: T): T => createRedactor({ literals: literalsOf([object], new Set()) }).object(object)

describe('texts that look like secrets', () => {
  test.each([
    ['a password', 'login with password=hunter22 failed', 'hunter22'],
    ['a password in YAML', 'db:\n  db_password: "hunter22"\n', 'hunter22'],
    ['a token in JSON', '{"apiToken":"abc.def"}', 'abc.def'],
    ['a token in JSON within JSON', JSON.stringify({ text: JSON.stringify({ apiToken: 'abc.def' }) }), 'abc.def'],
    ['a password of several words', '{"password":"much too \\"long\\" for you"}', 'you'],
    ['a flag', 'started with --auth-token s3cr3t --verbose', 's3cr3t'],
    ['a bearer token', 'Authorization: Bearer abcdef123456', 'abcdef123456'],
    ['a JSON web token', 'got eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM from it', 'SflKxwRJSM'],
    ['an address with a password', 'GET https://user:pa55word@proxy.test:3128/ failed', 'pa55word'],
    ['an address with a token', 'git clone https://abcdefgh@git.test/x', 'abcdefgh'],
    ['a private key', '-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----', 'MIIEow'],
    ['a private key that was cut', 'x -----BEGIN PRIVATE KEY-----\nMIIEow', 'MIIEow'],
    ['a key of a cloud', 'AKIAIOSFODNN7EXAMPLE', 'AKIAIOSFODNN7EXAMPLE'],
    ['a token of a service', `ghp_${'a'.repeat(36)}`, 'a'.repeat(36)],
  ])('%s is masked', (_, text, secret) => {
    expect(maskLikelySecrets(text)).not.toContain(secret)
    expect(maskLikelySecrets(text)).toContain(leftOut)
  })

  test.each([
    'package p0a apply: step 1 of 3 failed with exit code 2',
    'node n1 waits for a slot: 1 of 1 is out: n2 (rebooting since 2026-01-01T00:00:00Z)',
    'registry.test:5000/skyhook/p0a@sha256:0123456789abcdef',
  ])('ordinary words stay: %s', (text) => {
    expect(maskLikelySecrets(text)).toBe(text)
  })
})

describe('what a support archive must not contain', () => {
  test('values of environment variables go, their names and sources stay', () => {
    const env = [
      { name: 'A', value: 'very-much-mine' },
      { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
      { name: 'C', value: '' },
    ]
    expect(redact({ spec: { packages: { p: { env } } } })).toEqual({
      spec: { packages: { p: { env: [{ name: 'A', value: leftOut }, env[1], env[2]] } } },
    })
  })

  test('contents of configuration files go, and whether a file is empty stays', () => {
    const packages = { p: { configMap: { 'a.conf': 'user = me', 'b.conf': '' } } }
    expect(redact({ packages })).toEqual({ packages: { p: { configMap: { 'a.conf': leftOut, 'b.conf': '' } } } })
  })

  test('the volume of a ConfigMap keeps its name', () => {
    const volumes = [{ name: 'settings', configMap: { name: 'skyhookd', defaultMode: 420 } }]
    expect(redact({ volumes })).toEqual({ volumes })
  })

  test('managedFields and last-applied annotations go', () => {
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', mine: 'stays' }
    expect(redact({ metadata: { name: 'n', managedFields: [{}], annotations } })).toEqual({
      metadata: { name: 'n', annotations: { mine: 'stays' } },
    })
  })

  test('hashes stand for others where they are told to', () => {
    const translations = new Map([['aaaa1111bbbb2222', 'cccc3333dddd4444']])
    expect(createRedactor({ literals: new Set(), translations }).text('{"applied":"aaaa1111bbbb2222"}')).toBe(
      '{"applied":"cccc3333dddd4444"}',
    )
  })
})

/** Secrets as they look, none of which may be a part of an ordinary word. */
const secret = fc.stringMatching(/^[A-Za-z0-9]{12,24}$/)
const disguised = secret.chain((value) =>
  fc
    .constantFrom(
      `password=${value}`,
      `the token: ${value} was refused`,
      `{"client_secret":"${value}"}`,
      `curl -H "Authorization: Bearer ${value}"`,
      `https://me:${value}@proxy.test/`,
      `-----BEGIN PRIVATE KEY-----\n${value}\n-----END PRIVATE KEY-----`,
      `eyJhbGci${value}.eyJzdWIi${value}.${value}`,
      `--api-key ${value}`,
      `{"password":"two words, ${value}"}`,
      JSON.stringify({ text: JSON.stringify({ password: `two words, ${value}` }) }),
    )
    .map((text) => ({ value, text })),
)
const place = fc.constantFrom<(text: string) => object>(
  (text) => ({ status: { conditions: [{ type: 'Ready', message: `it failed: ${text}` }] } }),
  (text) => ({ metadata: { annotations: { reason: JSON.stringify({ message: text }) } } }),
  (text) => ({ message: text }),
  (text) => ({ spec: { containers: [{ args: ['--x', text] }] } }),
  (text) => ({ data: { 'settings.json': JSON.stringify({ proxy: { httpsProxy: text } }) } }),
)

test('no secret, environment value or last-applied annotation passes, wherever it stands', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(disguised, place), { minLength: 1, maxLength: 5 }),
      fc.array(fc.tuple(secret, place), { maxLength: 5 }),
      secret,
      secret,
      (secrets, literals, applied, field) => {
        const object = {
          places: secrets.map(([{ text }, put]) => put(text)),
          env: literals.map(([value], index) => ({ name: `V${index}`, value })),
          // programs print their environment, and agents publish the end of their logs
          echoed: literals.map(([value, put]) => put(`step said: ${value}`)),
          lines: {
            env: [{ name: 'LINES', value: `${applied}1\n  ${field}2\n` }],
            message: `${field}2, then ${applied}1`,
          },
          metadata: {
            annotations: { 'kubectl.kubernetes.io/last-applied-configuration': `{"x":"${applied}"}` },
            managedFields: [{ manager: applied }],
          },
          registryPassword: field,
        }
        const text = JSON.stringify(redact(object))
        for (const [{ value }] of secrets) expect(text).not.toContain(value)
        for (const [value] of literals) expect(text).not.toContain(value)
        for (const value of [applied, field]) expect(text).not.toContain(value)
      },
    ),
    { numRuns: 500 },
  )
})

test('redaction leaves JSON within texts readable', () => {
  fc.assert(
    fc.property(fc.array(disguised, { maxLength: 3 }), (secrets) => {
      const published = JSON.stringify({ texts: secrets.map(({ text }) => text), since: '2026-01-01T00:00:00Z' })
      expect(JSON.parse(redact({ published }).published)).toMatchObject({ since: '2026-01-01T00:00:00Z' })
    }),
  )
})
