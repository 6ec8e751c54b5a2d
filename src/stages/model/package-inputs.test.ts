import { describe, expect, test } from 'vitest'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { appliedHash } from './package-inputs.ts'

const base: SkyhookSpec = {
  packages: { a: { version: '1.0.0', image: 'r/a', configMap: { x: '1', y: '2' }, env: [{ name: 'A', value: '1' }] } },
}
const withA = (change: object): SkyhookSpec => ({ packages: { a: { ...base.packages!['a']!, ...change } } })

describe('the applied hash', () => {
  test('the applied hash has 16 hex digits', () => expect(appliedHash(base)).toMatch(/^[0-9a-f]{16}$/))

  test.each([
    ['image', { image: 'other/a' }],
    ['containerSHA', { containerSHA: `sha256:${'0'.repeat(64)}` }],
    ['resources', { resources: { cpuLimit: '1', cpuRequest: '1', memoryLimit: '1Gi', memoryRequest: '1Gi' } }],
    ['interrupt', { interrupt: { type: 'reboot' } }],
    ['gracefulShutdown', { gracefulShutdown: '10s' }],
    ['the order of keys', { configMap: { y: '2', x: '1' } }],
    ['an empty uninstall', { uninstall: {} }],
  ])('the applied hash does not change with %s', (_, change) =>
    expect(appliedHash(withA(change))).toBe(appliedHash(base)),
  )

  test.each([
    ['version', { version: '1.0' }],
    ['a value', { configMap: { x: '1', y: '3' } }],
    ['a removed key', { configMap: { x: '1' } }],
    ['an added empty key', { configMap: { x: '1', y: '2', z: '' } }],
    ['env', { env: [{ name: 'A', value: '2' }] }],
    ['the order of env', { env: [{ name: 'B' }, { name: 'A', value: '1' }] }],
    ['uninstall', { uninstall: { enabled: true } }],
  ])('the applied hash changes with %s', (_, change) => expect(appliedHash(withA(change))).not.toBe(appliedHash(base)))

  test('the applied hash of no packages is stable', () => expect(appliedHash({})).toBe(appliedHash({ packages: {} })))
})
