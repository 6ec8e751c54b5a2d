import { expect, test } from 'vitest'
import { ignoresNodeWright, nodeWrightKeysOf, isNodeWrightKey, nodeWrightMarksOn } from './nodewright.ts'

const n = 'nodewright.nvidia.com'

test('the annotations of NodeWright for one rollout are told from those of others and of people', () => {
  const annotations = {
    [`${n}/version_tuning`]: 'v0.20.0',
    [`${n}/nodeState_tuning`]: '{}',
    [`${n}/nodeState_tuning-more`]: '{}',
    [`${n}/nodeState_my_tuning`]: '{}',
    [`${n}/autoTaint_tuning`]: 'true',
    [`${n}/runtimeRequiredCordon`]: 'true',
    [`${n}/pool`]: 'tuning',
    'skyhook.nvidia.com/nodeState_tuning': '{}',
  }
  expect(nodeWrightKeysOf(annotations, 'tuning')).toEqual([`${n}/nodeState_tuning`, `${n}/version_tuning`])
  expect(nodeWrightKeysOf(annotations, 'other')).toEqual([])
  expect(nodeWrightKeysOf(undefined, 'tuning')).toEqual([])
  expect(Object.keys(annotations).filter(isNodeWrightKey)).toEqual([
    `${n}/version_tuning`,
    `${n}/nodeState_tuning`,
    `${n}/nodeState_tuning-more`,
    `${n}/nodeState_my_tuning`,
  ])
})

test('a Skyhook that NodeWright wrote, or that was made from its object, shows it', () => {
  const annotations = {
    [`${n}/mirrored-from`]: 'tuning',
    [`${n}/pool`]: 'gpu',
    'skyhook.nvidia.com/version': 'v0.15.0',
  }
  expect(nodeWrightMarksOn({ metadata: { annotations } })).toEqual([`${n}/mirrored-from`])
  expect(nodeWrightMarksOn({ metadata: { finalizers: ['skyhook.nvidia.com/skyhook', `${n}/nodewright`] } })).toEqual([
    `${n}/nodewright`,
  ])
  const conditions = [{ type: 'Ready' }, { type: 'skyhook.nvidia.com/Ready' }, { type: `${n}/Ready` }, null, 'text']
  expect(nodeWrightMarksOn({ metadata: {}, status: { conditions } })).toEqual([`${n}/Ready`])
  expect(nodeWrightMarksOn({ metadata: {}, status: { conditions: 'text' } })).toEqual([])
})

test('only the text true says that the record of NodeWright does not count', () => {
  const key = 'skyhook.nvidia.com/ignore-nodewright'
  expect([undefined, {}, { [key]: 'false' }, { [key]: 'True' }, { [key]: 'true' }].map(ignoresNodeWright)).toEqual([
    false,
    false,
    false,
    false,
    true,
  ])
})
