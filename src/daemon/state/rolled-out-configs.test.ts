import { expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import type { Snapshot } from '../../stages/model/snapshot.ts'
import { createRolledOutConfigs } from './rolled-out-configs.ts'

/** A node that the operator has worked on, for Skyhook `S` with the packages `a` and `b`. */
function snapshotOf(change: Partial<Snapshot> = {}): Snapshot {
  const node = new NodeSimulator()
  node.hostFolders = new Set(['S'])
  node.edit((annotations) => {
    const entryOf = (name: string): object => ({ name, version: '1.0.0', stage: 'config', state: 'complete' })
    annotations['skyhook.nvidia.com/nodeState_S'] = JSON.stringify({ 'a|1.0.0': entryOf('a'), 'b|1.0.0': entryOf('b') })
  })
  const configMap = { 'x.conf': 'new' }
  node.apply('S', { packages: { a: pkg('1.0.0', { configMap }), b: pkg('1.0.0', { configMap }), c: pkg('1.0.0') } })
  return { ...node.snapshot(), ...change }
}

/** The configuration of package `a`. */
const operatorsOf = (skyhook: string) => ({
  metadata: {
    annotations: {
      'skyhook.nvidia.com/name': skyhook,
      'skyhook.nvidia.com/Package.Name': 'a',
      'skyhook.nvidia.com/Package.Version': '1.0.0',
    },
  },
  data: { 'x.conf': 'old' },
})

test.each([
  ['of a person', { metadata: {}, data: { 'x.conf': 'old' } }],
  ['of another Skyhook, whose name collides', operatorsOf('S-a')],
])('a ConfigMap %s is not taken for what was rolled out', async (_, found) => {
  const source = createRolledOutConfigs(() => Promise.resolve(found))
  await source.read(snapshotOf())
  expect(source.current().size).toBe(0)
})

test('what the operator rolled out is read by the names of its ConfigMaps, which need not exist', async () => {
  const asked: string[] = []
  const source = createRolledOutConfigs((name) => {
    asked.push(name)
    return Promise.resolve(name.includes('-a-') ? operatorsOf('S') : undefined)
  })
  await source.read(snapshotOf())
  expect(asked).toEqual(['s-a-1.0.0', 's-b-1.0.0'])
  expect(source.current()).toEqual(new Map([['S', { a: { 'x.conf': 'old' } }]]))
})

test.each([
  ['without files of the operator', { hostFolders: new Set<string>() }],
  ['without Skyhooks', { skyhooks: { known: false, why: 'not listed' } as const }],
])('nothing is read on a node %s', async (_, change) => {
  const source = createRolledOutConfigs(() => Promise.reject(new Error('asked')))
  await source.read(snapshotOf(change))
  expect(source.current().size).toBe(0)
})

test('a ConfigMap that cannot be read is an error, and nothing is known', async () => {
  const source = createRolledOutConfigs(() => Promise.reject(new Error('refused')))
  await expect(source.read(snapshotOf())).rejects.toThrow('refused')
  expect(source.current().size).toBe(0)
})
