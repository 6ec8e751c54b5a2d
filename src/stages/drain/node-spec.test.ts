/** Which taints count as the runtime-required one, and what becomes of them. */
import { describe, expect, test } from 'vitest'
import type { KubernetesNode, Taint } from '../../schemas/kubernetes.ts'
import { autoTaintRemoval, hasRequiredTaint, requiredTaint, unliftedTaint } from './node-spec.ts'

const skyhook: Taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
const nodewright: Taint = { ...skyhook, key: 'nodewright.nvidia.com' }
const ofValues: Taint = { key: 'example.com/new', value: 'yes', effect: 'NoExecute' }
const gpu: Taint = { key: 'nvidia.com/gpu', effect: 'NoSchedule' }
const noExecute: Taint = { ...nodewright, effect: 'NoExecute' }

const nodeWith = (...taints: readonly Taint[]): KubernetesNode => ({
  metadata: { name: 'n1', uid: 'u1', resourceVersion: '1' },
  spec: { taints },
})
const complete = [{ complete: true, autoTaint: true }]
const atWork = [{ complete: false, autoTaint: true }]
const always = { wasRequired: false, mayLift: true }

describe('the runtime-required taint', () => {
  test.each<[string, Taint, readonly Taint[], readonly Taint[] | undefined]>([
    ['the configured one', skyhook, [gpu, skyhook], [gpu]],
    ["NodeWright's", skyhook, [gpu, nodewright], [gpu]],
    ["Skyhook's, where the chart names NodeWright's", nodewright, [skyhook, gpu], [gpu]],
    ['both', skyhook, [skyhook, nodewright], []],
    ['both beside another one of the values', ofValues, [nodewright, ofValues, gpu, skyhook], [gpu]],
    ['no other effect of a known key', skyhook, [noExecute], undefined],
    ['no taint of others', skyhook, [gpu], undefined],
  ])('an agent lifts %s when all is complete', (_, configured, taints, left) => {
    expect(requiredTaint(nodeWith(...taints), configured, complete, always)?.taints).toEqual(left)
  })

  test.each([[[skyhook]], [[nodewright]], [[skyhook, nodewright]]])(
    'the taint stays until every Skyhook that requires it is complete: %j',
    (taints) => {
      const required = [...complete, ...atWork]
      expect(requiredTaint(nodeWith(...taints), skyhook, required, always)).toBeUndefined()
      expect(requiredTaint(nodeWith(...taints), skyhook, complete, { ...always, mayLift: false })).toBeUndefined()
    },
  )

  test.each<[string, Taint, readonly Taint[], readonly Taint[] | undefined]>([
    ['the configured one on a node without any', nodewright, [gpu], [gpu, nodewright]],
    ["none where the node has NodeWright's", skyhook, [nodewright], undefined],
    ["none where the node has Skyhook's", nodewright, [skyhook], undefined],
    ['none where the node has one of them and the values another', ofValues, [skyhook], undefined],
    ['the configured one beside another effect of a known key', skyhook, [noExecute], [noExecute, skyhook]],
  ])('autoTaintNewNodes puts %s', (_, configured, taints, desired) => {
    const change = requiredTaint(nodeWith(...taints), configured, atWork, always)
    expect(change?.taints).toEqual(desired)
    expect(Object.keys(change?.annotations ?? {})).toEqual(
      desired ? [`skyhook.nvidia.com/autoTaint_${configured.key}`] : [],
    )
  })

  test.each<[string, readonly Taint[], boolean]>([
    ['the configured taint', [ofValues], true],
    ["Skyhook's", [skyhook], true],
    ["NodeWright's", [nodewright], true],
    ['another effect', [noExecute], false],
    ['none', [gpu], false],
  ])('a node with %s counts as new by its taints alone', (_, taints, isNew) => {
    expect(hasRequiredTaint(nodeWith(...taints), ofValues)).toBe(isNew)
  })

  test('the annotation of autoTaintNewNodes goes with the taint and the last Skyhook that has the field', () => {
    const key = 'skyhook.nvidia.com/autoTaint_skyhook.nvidia.com'
    const asking = { spec: { runtimeRequired: true, autoTaintNewNodes: true } }
    const [bare] = [nodeWith(gpu)]
    const node = { ...bare, metadata: { ...bare.metadata, annotations: { [key]: 'true', other: 'true' } } }
    const removal = (taints: readonly Taint[], skyhooks: readonly (typeof asking)[]) =>
      autoTaintRemoval(node, taints, skyhook, skyhooks)
    expect(removal([gpu], [])).toEqual({ [key]: null })
    expect(removal([gpu], [{ spec: { ...asking.spec, autoTaintNewNodes: false } }])).toEqual({ [key]: null })
    expect(removal([gpu], [asking])).toEqual({})
    expect(removal([gpu, skyhook], [])).toEqual({})
    expect(autoTaintRemoval(bare, [], skyhook, [])).toEqual({})
  })

  test('each taint that nobody lifts is named', () => {
    const node = nodeWith(nodewright, gpu, skyhook)
    expect(unliftedTaint(node, skyhook, [])).toEqual({
      taints: [nodewright, skyhook],
      text: 'nodewright.nvidia.com=runtime-required:NoSchedule and skyhook.nvidia.com=runtime-required:NoSchedule',
      others: [],
    })
    expect(unliftedTaint(nodeWith(gpu), skyhook, [])).toBeUndefined()
    const requiring = { metadata: { name: 'one', uid: 'u', resourceVersion: '1' }, spec: { runtimeRequired: true } }
    expect(unliftedTaint(node, skyhook, [requiring])).toBeUndefined()
  })
})
