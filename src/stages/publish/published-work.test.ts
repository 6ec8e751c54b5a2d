import { expect, test } from 'vitest'
import { installedNode, pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { type Decide, NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { ignoreLabel, nodeStateKey, stepKey } from '../../schemas/annotations.ts'
import { nodeStepOf, publishedOf } from '../../schemas/published.ts'
import { decide } from '../decide.ts'
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

type Annotations = Readonly<Record<string, string | null>>

/** A node on which no step of `a` ends, and what it writes. */
function hangingNode(): { readonly node: NodeSimulator; readonly written: Annotations[] } {
  const written: Annotations[] = []
  const watched: Decide = (snapshot, lastReasons) => {
    const plan = decide(snapshot, lastReasons)
    for (const action of plan.actions) if (action.do === 'publish') written.push(action.patch.annotations)
    return plan
  }
  const node = new NodeSimulator({}, { decide: watched })
  node.hangingPackages.add('a')
  node.apply('s', { packages: { a: pkg('1.0.0') } })
  return { node, written }
}

const stepOn = ({ node }: NodeSimulator) => nodeStepOf(node, 's', publishedOf(node, 's').entries)

test('a step is on the Node with the write of its stage, and costs no other', () => {
  const { node, written } = hangingNode()
  const startMs = node.nowMs
  node.settleFor(600_000)
  expect(stepOn(node)).toEqual({
    name: 'a',
    version: '1.0.0',
    mode: 'apply',
    path: 'run.sh',
    sinceMs: startMs,
    attempt: 1,
  })
  const withStep = written.filter((annotations) => Object.hasOwn(annotations, stepKey('s')))
  expect(withStep).toEqual([expect.objectContaining({ [nodeStateKey('s')]: expect.any(String) as string })])
})

test('a step that nobody has written yet is written once it has lasted ten seconds', () => {
  const { node } = hangingNode()
  node.settleFor(1_000)
  const { metadata } = node.node
  const annotations = { ...metadata.annotations, [stepKey('s')]: '{}' }
  node.node = { ...node.node, metadata: { ...metadata, annotations } }
  node.settleFor(8_000)
  expect(stepOn(node)).toBeUndefined()
  node.settleFor(2_000)
  expect(stepOn(node)).toMatchObject({ mode: 'apply', path: 'run.sh' })
})

test('a step that ends on a suspended node, where no other one follows, leaves the Node ten seconds later', () => {
  const { node } = hangingNode()
  node.settleFor(1_000)
  const { metadata } = node.node
  node.node = { ...node.node, metadata: { ...metadata, labels: { ...metadata.labels, [ignoreLabel]: 'true' } } }
  node.settleFor(1_000)
  node.finishHanging('a')
  node.settleFor(9_000)
  expect(stepOn(node)).toMatchObject({ mode: 'apply' })
  node.settleFor(2_000)
  expect([stepOn(node), node.annotation('step_s')]).toEqual([undefined, undefined])
})

test('a complete node says nothing of steps', () => {
  const node = new NodeSimulator()
  node.apply('s', { packages: { a: pkg('1.0.0') } })
  node.settleFor(5_000)
  expect([node.status(), node.annotation('step_s')]).toEqual(['complete', undefined])
})

test('the next attempt says which one it is, and since when the stage fails', () => {
  const node = new NodeSimulator()
  node.exitCodes.set('a apply', 1)
  node.apply('s', { packages: { a: pkg('1.0.0') } })
  const startMs = node.nowMs
  node.settleFor(1_000)
  node.hangingPackages.add('a')
  node.settleFor(10_000)
  expect(stepOn(node)).toMatchObject({ attempt: 2, failingSinceMs: startMs })
})
