import { expect, test } from 'vitest'
import { installedNode, pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { isSameCompanion } from './published-work.ts'

const workOn = (annotation: string | undefined): unknown =>
  (JSON.parse(annotation ?? '{}') as { readonly work?: unknown }).work

test('the companion says what a package is configured with, by a hash, and how it leaves', () => {
  const node = installedNode({ configMap: { x: '1' }, uninstall: { enabled: false } })
  const before = workOn(node.annotation('journal_s'))
  expect(before).toEqual({
    'a|1.0.0': { inputs: expect.stringMatching(/^[0-9a-f]{16}$/), wasComplete: true, uninstall: { enabled: false } },
  })
  node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: '2' }, uninstall: { enabled: false } }) } })
  node.settleFor(5_000)
  expect(node.status()).toBe('complete')
  expect(workOn(node.annotation('journal_s'))).not.toEqual(before)
})

test('companions that differ in their work alone are the same', () => {
  const companion = '{"v":1,"rev":2,"sha256":"x","nodeUID":"u"'
  expect(isSameCompanion(`${companion},"work":{"a|1":{"inputs":"1"}}}`, `${companion},"work":{"b|1":{}}}`)).toBe(true)
  expect(isSameCompanion(`${companion}}`, `${companion},"work":{"b|1":{}}}`)).toBe(true)
  expect(isSameCompanion(`${companion}}`, `${companion},"applied":"1"}`)).toBe(false)
  expect(isSameCompanion(undefined, `${companion}}`)).toBe(false)
})
