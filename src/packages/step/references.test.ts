import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expandVariables } from '../../schemas/environment-variable.ts'
import type { EnvVar } from '../../schemas/skyhook.ts'
import { resolveReferences, type ReferencePort } from './references.ts'

const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64')
const fields = { nodeName: 'node-1', hostIp: '10.0.0.7', namespace: 'skyhook' }
const port: ReferencePort = {
  secret: async (name) =>
    name === 'token'
      ? {
          key: base64('s3cret'),
          binary: base64(new Uint8Array([0xff, 0xfe])),
          nul: base64('a\0b'),
          pem: base64('BEGIN\r\n'),
        }
      : undefined,
  configMap: async (name) => (name === 'site' ? { zone: 'z1', empty: '' } : undefined),
}
const resources = { cpuRequest: '250m', cpuLimit: '1500m', memoryLimit: '512Mi' }
const resolve = (env: readonly EnvVar[], version = 257) =>
  resolveReferences({ env, resources, fields, port, systemdVersion: async () => version })

describe('expansion is the kubelet’s', () => {
  const values = new Map([
    ['A', 'one'],
    ['B', '$(A)'],
    ['C D', 'blank'],
  ])
  test.each([
    ['$(A)', 'one'],
    ['x$(A)y$(A)', 'xoneyone'],
    ['$$(A)', '$(A)'],
    ['$$$(A)', '$one'],
    ['$$$$', '$$'],
    ['$(B)', '$(A)'], // no second pass
    ['$(C D)', 'blank'],
    ['$(NONE)', '$(NONE)'],
    ['$()', '$()'],
    ['$(A', '$(A'],
    ['$(A$$', '$(A$'],
    ['${A} $A $', '${A} $A $'],
    ['', ''],
  ])('the text %s expands to %s', (text, expanded) => {
    expect(expandVariables(text, values)).toBe(expanded)
  })

  test('doubling every dollar sign keeps any text unchanged', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(expandVariables(text.replaceAll('$', '$$$$'), values)).toBe(text)
      }),
    )
  })
})

test('variables are resolved in the order of the list', async () => {
  const resolved = await resolve([
    { name: 'EARLY', value: '$(TOKEN)' },
    { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'token', key: 'key' } } },
    { name: 'LATE', value: 'bearer $(TOKEN)' },
    { name: 'ZONE', valueFrom: { configMapKeyRef: { name: 'site', key: 'zone' } } },
    { name: 'EMPTY', valueFrom: { configMapKeyRef: { name: 'site', key: 'empty' } } },
    { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
    { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.hostIP', apiVersion: 'v1' } } },
    { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
    { name: 'NS', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
    { name: 'CPUS', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
    { name: 'MILLI', valueFrom: { resourceFieldRef: { resource: 'requests.cpu', divisor: '1m' } } },
    { name: 'MEGA', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1Mi' } } },
    { name: 'BYTES', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '0' } } },
    { name: 'BYTES_BY_NUMBER', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: 0 } } },
    { name: 'NOTHING' },
  ])
  expect(resolved).toEqual({
    outcome: 'resolved',
    secrets: ['s3cret'],
    variables: Object.entries({
      EARLY: '$(TOKEN)',
      TOKEN: 's3cret',
      LATE: 'bearer s3cret',
      ZONE: 'z1',
      EMPTY: '',
      NODE: 'node-1',
      IP: '10.0.0.7',
      POD_IP: '10.0.0.7',
      NS: 'skyhook',
      CPUS: '2',
      MILLI: '250',
      MEGA: '512',
      BYTES: '536870912',
      BYTES_BY_NUMBER: '536870912',
      NOTHING: '',
    }).map(([name, value]) => ({ name, value })),
  })
})

test('the last value of a repeated name wins', async () => {
  const resolved = await resolve([
    { name: 'A', value: '1' },
    { name: 'B', value: '$(A)' },
    { name: 'A', value: '2$(A)' },
  ])
  expect(resolved).toMatchObject({
    variables: [
      { name: 'A', value: '21' },
      { name: 'B', value: '1' },
    ],
  })
})

test('all missing references are named, and optional ones are left out', async () => {
  const secretKeyRef = { name: 'token', key: 'gone' }
  expect(
    await resolve([
      { name: 'A', valueFrom: { secretKeyRef } },
      { name: 'B', valueFrom: { secretKeyRef: { name: 'none', key: 'k' } } },
      { name: 'C', valueFrom: { configMapKeyRef: { name: 'none', key: 'k' } } },
      { name: 'D', valueFrom: { configMapKeyRef: { name: 'none', key: 'k' } } },
    ]),
  ).toEqual({
    outcome: 'missing',
    references: [
      'env A needs key "gone" of Secret skyhook/token, which has no such key',
      'env B needs Secret skyhook/none, which does not exist',
      'env C needs ConfigMap skyhook/none, which does not exist',
      'env D needs ConfigMap skyhook/none, which does not exist',
    ],
  })
  expect(await resolve([{ name: 'A', valueFrom: { secretKeyRef: { ...secretKeyRef, optional: true } } }])).toEqual({
    outcome: 'resolved',
    variables: [],
    secrets: [],
  })
})

describe('what can never work names the variable and the reason', () => {
  test.each<[string, EnvVar, string]>([
    ['a name with a dot', { name: 'a.b', value: 'x' }, 'env "a.b" is not a variable name that systemd can set'],
    ['a name with a line break', { name: 'A\nB', value: 'x' }, 'env "A\\nB" is not a variable name'],
    [
      'a field of a pod',
      { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      'env A asks for field metadata.name; supported are spec.nodeName',
    ],
    [
      'a resource nobody set',
      { name: 'A', valueFrom: { resourceFieldRef: { resource: 'requests.memory' } } },
      'env A asks for requests.memory, which',
    ],
    [
      'an unknown resource',
      { name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.gpu' } } },
      'env A asks for resource limits.gpu; supported',
    ],
    [
      'a resource that every object has',
      { name: 'A', valueFrom: { resourceFieldRef: { resource: 'constructor' } } },
      'env A asks for resource constructor; supported',
    ],
    ['an empty valueFrom', { name: 'A', valueFrom: {} }, 'env A has an unsupported valueFrom'],
    [
      'a binary secret',
      { name: 'A', valueFrom: { secretKeyRef: { name: 'token', key: 'binary' } } },
      'env A is key "binary" of Secret skyhook/token, which is not UTF-8',
    ],
    [
      'a secret with NUL',
      { name: 'A', valueFrom: { secretKeyRef: { name: 'token', key: 'nul' } } },
      'env A contains a NUL character',
    ],
  ])('an impossible reference is reported with variable and reason: %s', async (_, variable, message) => {
    const resolved = await resolve([variable])
    expect(resolved.outcome === 'invalid' && resolved.problems.join()).toContain(message)
  })
})

describe('a value with a control character', () => {
  const pem: EnvVar = { name: 'PEM', valueFrom: { secretKeyRef: { name: 'token', key: 'pem' } } }

  test('a value with a control character is refused where systemd drops it, and not quoted', async () => {
    const literal = { name: 'COLOR', value: '\x1b[1m' }
    const copy = { name: 'COPY', value: 'the $(PEM)' }
    expect(await resolve([pem, literal, copy], 247)).toEqual({
      outcome: 'invalid',
      problems: [
        expect.stringMatching(/^env PEM contains the control character U\+000D .* this host has 247: remove it/),
        expect.stringMatching(/^env COLOR contains the control character U\+001B, /),
        expect.stringMatching(/^env COPY contains the control character U\+000D /),
      ],
    })
    expect(JSON.stringify(await resolve([pem, copy], 247))).not.toContain('BEGIN')
    expect(await resolve([pem], 248)).toMatchObject({ outcome: 'resolved', variables: [{ value: 'BEGIN\r\n' }] })
  })

  test('a value with a control character is not resolved while the version of systemd is not known', async () => {
    const systemdVersion = async (): Promise<number> => {
      throw new Error('no answer')
    }
    await expect(resolveReferences({ env: [pem], fields, port, systemdVersion })).rejects.toThrow('no answer')
    const plain = [{ name: 'A', value: 'two\nlines' }]
    expect(await resolveReferences({ env: plain, fields, port, systemdVersion })).toMatchObject({ outcome: 'resolved' })
  })
})

test('each object is read once, and a failing read rejects', async () => {
  const reads: string[] = []
  const systemdVersion = async (): Promise<number> => 257
  const countingPort: ReferencePort = {
    ...port,
    secret: async (name) => (reads.push(name), { a: base64('1'), b: base64('2') }),
  }
  const env = ['a', 'b'].map((key) => ({ name: key, valueFrom: { secretKeyRef: { name: 's', key } } }))
  await resolveReferences({ env, fields, port: countingPort, systemdVersion })
  expect(reads).toEqual(['s'])

  const failingPort: ReferencePort = { ...port, secret: () => Promise.reject(new Error('503')) }
  await expect(resolveReferences({ env, fields, port: failingPort, systemdVersion })).rejects.toThrow('503')
})
