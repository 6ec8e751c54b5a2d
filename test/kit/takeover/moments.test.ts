import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { momentNames, readMoment, withUids } from './moments.ts'

test('the README of the recorded moments has a row for each of the 26', () => {
  const readme = readFileSync(join(import.meta.dirname, '../../fixtures/takeover/README.md'), 'utf8')
  const named = [...readme.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name)
  expect(new Set(named)).toEqual(new Set(momentNames))
  expect(momentNames).toHaveLength(26)
})

test('every owner of a recorded object is a recorded Skyhook', () => {
  for (const name of momentNames) {
    const { nodes, skyhooks, pods, configMaps } = readMoment(name)
    const uids = skyhooks.map(({ metadata }) => metadata.uid)
    expect(nodes.map(({ metadata }) => metadata.name)).toEqual(['node-1', 'node-2', 'node-3'])
    for (const { metadata } of [...pods, ...configMaps])
      expect(
        metadata.ownerReferences?.every(({ uid }) => uids.includes(uid)),
        `${name} ${metadata.name}`,
      ).toBe(true)
  }
})

test('the UIDs of another cluster replace all recorded ones', () => {
  const name = '08-paused-and-disabled'
  const recorded = readMoment(name)
  const uids = new Map(recorded.skyhooks.map(({ metadata }) => [metadata.name, `new-uid-of-${metadata.name}`]))
  const loaded = withUids(recorded, uids)
  const text = JSON.stringify(loaded)
  for (const { metadata } of recorded.skyhooks) expect(text).not.toContain(metadata.uid)
  expect(text).toContain('/var/lib/skyhook/drivers/driver-5.0.0-new-uid-of-drivers-')
  expect(() => withUids(recorded, new Map())).toThrow('no UID for Skyhook')
})
