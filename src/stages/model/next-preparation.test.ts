import { expect, test } from 'vitest'
import { preparedPackage } from '../../../test/kit/objects/plan-builder.ts'
import { nextPreparation } from './plan-builder.ts'
import type { Preparation, PreparationDepth } from './snapshot.ts'

const failed = (depth: PreparationDepth, retryAtMs: number): Preparation => ({
  state: 'failed',
  depth,
  reason: 'ImagePull',
  message: 'no such image',
  retryAtMs,
})

test.each<[string, Preparation | undefined, PreparationDepth, PreparationDepth | undefined]>([
  ['nobody has asked for goes as far as required', undefined, 'manifest', 'manifest'],
  ['nobody has asked for goes as far as required', undefined, 'layers', 'layers'],
  ['is checked needs nothing else while its layers are not required', { state: 'checked' }, 'manifest', undefined],
  ['is checked continues with its layers', { state: 'checked' }, 'layers', 'layers'],
  ['is under way is not asked for twice', { state: 'pending' }, 'layers', undefined],
  ['is complete is complete at any depth', preparedPackage, 'manifest', undefined],
  ['is complete is complete at any depth', preparedPackage, 'layers', undefined],
  ['failed waits', failed('layers', 1_001), 'layers', undefined],
  ['failed at its manifest is tried again as far as required', failed('manifest', 1_000), 'manifest', 'manifest'],
  ['failed at its manifest is tried again as far as required', failed('manifest', 1_000), 'layers', 'layers'],
  ['failed at its layers is tried again with them', failed('layers', 1_000), 'manifest', 'layers'],
])('an image that %s (%#)', (_, found, requiredDepth, depth) => {
  expect(nextPreparation(found, requiredDepth, 1_000)).toBe(depth)
})
