import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { install, installedNode, pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

const nodeWright = 'nodewright.nvidia.com'
const served = { isNodeWrightServed: true, files: new Map<string, string>() }
const fileOf = (skyhook: string) => ({
  isNodeWrightServed: false,
  files: new Map([[skyhook, `/var/lib/skyhook/${skyhook}/history/a.json`]]),
})
const withKey = (node: NodeSimulator, skyhook: string): void =>
  node.edit((annotations) => (annotations[`${nodeWright}/nodeState_${skyhook}`] = '{}'))
const ignored = { 'skyhook.nvidia.com/ignore-nodewright': 'true' }

type Find = (node: NodeSimulator) => void
const finds: readonly (readonly [string, Find, RegExp])[] = [
  ['the API server serves its group', (node) => (node.otherOperator = served), /serves nodewright\.nvidia\.com, /],
  ['the Node has a key of it', (node) => withKey(node, 's'), /has nodewright\.nvidia\.com\/nodeState_s: /],
  [
    'the host has a file of an operator that the Node does not know',
    (node) => (node.otherOperator = fileOf('s')),
    /has \/var\/lib\/skyhook\/s\/history\/a\.json /,
  ],
]

describe.each(finds)('where %s', (_, find, found) => {
  test('nothing starts, and only the reason is written, which names the command', () => {
    const node = new NodeSimulator()
    find(node)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(30_000)
    const { reason, message = '' } = node.lastReasons.get('s') ?? {}
    expect([reason, message]).toEqual(['Takeover', expect.stringMatching(found)])
    expect(message).toContain('kubectl annotate skyhook s skyhook.nvidia.com/ignore-nodewright=true')
    expect([node.executedSteps, node.slots, node.fetchedImages, node.journal.skyhooks]).toEqual([[], [], [], {}])
    const keys = Object.keys(node.node.metadata.annotations ?? {}).filter((key) => key.startsWith('skyhook.'))
    expect(keys).toEqual(['skyhook.nvidia.com/reason_s'])
  })

  test('the annotation of the Skyhook, or the setting, says that it does not count', () => {
    const annotated = new NodeSimulator()
    find(annotated)
    annotated.apply('s', { packages: { a: pkg('1.0.0') } }, ignored)
    expect(annotated.settleFor(30_000).status()).toBe('complete')
    const set = new NodeSimulator()
    find(set)
    set.ignoreNodeWright = true
    set.apply('s', { packages: { a: pkg('1.0.0') } })
    expect(set.settleFor(30_000).status()).toBe('complete')
  })

  test('a node that waited starts once a person has decided', () => {
    const node = new NodeSimulator()
    find(node)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(30_000)
    node.apply('s', { packages: { a: pkg('1.0.0') } }, ignored)
    node.settleFor(30_000)
    expect([node.executedSteps, node.status(), node.reason()]).toEqual([install, 'complete', undefined])
  })
})

describe.each(finds.slice(0, 2))('where %s, and an agent has a record', (_, find) => {
  test('what is complete stays complete, and a new version waits', () => {
    const node = installedNode()
    find(node)
    node.settleFor(30_000)
    expect([node.status(), node.reason()]).toEqual(['complete', undefined])
    node.apply('s', { packages: { a: pkg('1.1.0') } })
    node.settleFor(30_000)
    expect([node.executedSteps, node.slots, node.reason()]).toEqual([[], [], 'Takeover'])
  })

  test('started work continues to its end', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleUntil(() => node.executedSteps.length > 0)
    find(node)
    node.settleFor(30_000)
    expect([node.executedSteps, node.status()]).toEqual([install, 'complete'])
  })
})

test('a slot of work that no journal knows is given back, unless the node is cordoned under it', () => {
  for (const isCordoned of [false, true]) {
    const node = new NodeSimulator()
    node.otherOperator = served
    if (isCordoned) node.edit((annotations) => (annotations['skyhook.nvidia.com/cordon_s'] = 'true'))
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.slotAppears('s', 'skyhook')
    node.settleFor(30_000)
    expect(node.slots.length).toBe(isCordoned ? 1 : 0)
  }
})

test('a Skyhook that NodeWright has migrated waits', () => {
  const node = new NodeSimulator()
  node.apply('s', { packages: { a: pkg('1.0.0') } }, { [`${nodeWright}/mirrored-from`]: 's' })
  node.settleFor(30_000)
  expect([node.executedSteps, node.reason()]).toEqual([[], 'Takeover'])
  expect(node.lastReasons.get('s')?.message).toMatch(/has nodewright\.nvidia\.com\/mirrored-from: /)
})

test('a file of an operator counts only where neither the Node nor the journal knows the Skyhook', () => {
  const recorded = installedNode()
  recorded.otherOperator = fileOf('s')
  recorded.apply('s', { packages: { a: pkg('1.1.0') } })
  expect(recorded.settleFor(30_000).status()).toBe('complete')
  const shown = new NodeSimulator()
  shown.otherOperator = fileOf('s')
  shown.hostFolders = new Set(['s'])
  shown.edit((annotations) => {
    const entry = { name: 'a', version: '1.0.0', image: 'r/pkg', stage: 'config', state: 'complete' }
    annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify({ 'a|1.0.0': entry })
  })
  shown.apply('s', { packages: { a: pkg('1.0.0') } })
  expect([shown.settleFor(30_000).status(), shown.executedSteps]).toEqual(['complete', []])
})

describe('a Skyhook that is not concerned', () => {
  const two = (priority: number): NodeSimulator => {
    const node = new NodeSimulator()
    withKey(node, 's')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.apply('other', { priority, packages: { b: pkg('1.0.0') } })
    return node.settleFor(30_000)
  }

  test('it is worked on where it comes first', () => {
    expect([two(100).status('other'), two(100).reason('s')]).toEqual(['complete', 'Takeover'])
  })

  test('it waits where the order demands it', () => {
    expect([two(300).reason('other'), two(300).reason('s')]).toEqual(['WaitingForPriority', 'Takeover'])
  })
})

describe('cordon and taint', () => {
  const taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
  const found = (spec: object): NodeSimulator => {
    const node = new NodeSimulator()
    node.otherOperator = served
    node.node = { ...node.node, spec }
    return node
  }

  test('the cordon and the marks that the other operator may have copied stay', () => {
    const node = found({ unschedulable: true })
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/cordon_s'] = 'true'
      annotations['skyhook.nvidia.com/cordon_gone'] = 'true'
    })
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(30_000)
    const marks = Object.keys(node.node.metadata.annotations ?? {}).filter((key) => key.includes('/cordon_'))
    expect([node.node.spec?.unschedulable, marks.length]).toEqual([true, 2])
  })

  test('the runtime-required taint is neither put on nor taken off, also when the Skyhook goes', () => {
    const required = { runtimeRequired: true, autoTaintNewNodes: true, packages: { a: pkg('1.0.0') } }
    const free = found({})
    free.apply('s', required)
    free.settleFor(30_000)
    expect(free.node.spec?.taints ?? []).toEqual([])
    const tainted = found({ taints: [taint] })
    tainted.apply('s', required)
    tainted.apply('other', { ...required, packages: {}, priority: 1 }, ignored)
    tainted.settleFor(30_000)
    expect([tainted.status('other'), tainted.node.spec?.taints]).toEqual(['complete', [taint]])
    const alone = found({ taints: [taint] })
    alone.apply('s', required)
    alone.settleFor(30_000)
    alone.remove('s')
    alone.settleFor(30_000)
    expect(alone.node.spec?.taints).toEqual([taint])
  })
})
