import { describe, expect, test } from 'vitest'
import { cordonKey, journalKey, nodeStateKey, reasonKey, reasonsKey, statusKey } from '../../schemas/annotations.ts'
import type { KubernetesNode, NodePatch } from '../../schemas/kubernetes.ts'
import { emptyPatch } from '../model/plan.ts'
import type { Failure } from '../model/snapshot.ts'
import { annotationRoom, essentialPatch, maxAnnotationBytes, publishAction, reasonsOf } from './essential-patch.ts'

const nodeWith = (annotations: Record<string, string>): KubernetesNode => ({
  metadata: { name: 'n', uid: 'u', resourceVersion: '7', annotations },
})
const patchOf = (annotations: Record<string, string | null>, more: Partial<NodePatch> = {}): NodePatch => ({
  ...emptyPatch(),
  annotations,
  ...more,
})
const almostFull = { other: 'x'.repeat(maxAnnotationBytes - 100) }
const refused: Failure = { reason: 'ApiRequestRefused', message: 'no', sinceMs: 0, isContentRefused: true }

describe('what is written of a refused change', () => {
  test('texts are left out, everything else stays', () => {
    const patch = patchOf(
      { [reasonKey('s')]: 'why', [reasonsKey('s')]: 'why', [statusKey('s')]: 'complete', [cordonKey('s')]: null },
      { unschedulable: false, labels: { [statusKey('s')]: 'complete' } },
    )
    expect(essentialPatch(nodeWith({}), patch)).toEqual({
      ...patch,
      annotations: { [statusKey('s')]: 'complete', [cordonKey('s')]: null },
    })
  })

  test('a text that goes goes, and the texts of the Node stay where there is room', () => {
    const node = nodeWith({ [reasonKey('s')]: 'why', [reasonKey('other')]: 'why' })
    expect(essentialPatch(node, patchOf({ [reasonKey('s')]: null })).annotations).toEqual({ [reasonKey('s')]: null })
  })

  test('the texts of the Node go where there is no room', () => {
    const node = nodeWith({ ...almostFull, [reasonKey('other')]: 'y'.repeat(40) })
    const { annotations } = essentialPatch(node, patchOf({ [statusKey('s')]: 'complete' }))
    expect(annotations).toEqual({ [statusKey('s')]: 'complete', [reasonKey('other')]: null })
  })

  test('the states of the Skyhook that needs most room are left out, those of others are written', () => {
    const node = nodeWith(almostFull)
    const patch = patchOf(
      {
        [nodeStateKey('large')]: 'z'.repeat(5_000),
        [journalKey('large')]: '{}',
        [statusKey('large')]: 'in_progress',
        [cordonKey('small')]: null,
        [statusKey('small')]: 'complete',
      },
      { labels: { [statusKey('large')]: 'in_progress', [statusKey('small')]: 'complete' } },
    )
    expect(essentialPatch(node, patch)).toEqual({
      ...patch,
      annotations: { [cordonKey('small')]: null, [statusKey('small')]: 'complete' },
      labels: { [statusKey('small')]: 'complete' },
    })
  })
})

describe('the action that writes a change', () => {
  const patch = patchOf({ [reasonKey('s')]: 'why' }, { unschedulable: false })

  test('it has all of it, as long as nothing is refused', () => {
    const action = publishAction({ node: nodeWith({}), failures: new Map() }, patch)
    expect(action).toEqual({ do: 'publish', key: 'publish', patch, computedFrom: '7' })
  })

  test('what matters goes under another key after a refusal, and does not wait', () => {
    const action = publishAction({ node: nodeWith({}), failures: new Map([['publish publish', refused]]) }, patch)
    expect(action).toMatchObject({ key: 'publish without texts', patch: { annotations: {}, unschedulable: false } })
  })

  test('the whole is tried again after a refusal where nothing but texts is left', () => {
    const texts = patchOf({ [reasonKey('s')]: 'why' })
    const action = publishAction({ node: nodeWith({}), failures: new Map([['publish publish', refused]]) }, texts)
    expect(action).toMatchObject({ key: 'publish', patch: texts })
  })
})

test.each([
  ['as they are', undefined],
  ['once more after a refusal', refused],
])('reasons alone are written %s', (_, failure) => {
  const node = nodeWith({})
  const failures = new Map(failure === undefined ? [] : [['publish publish', failure]])
  const action = publishAction({ node, failures }, patchOf({ [reasonKey('s')]: 'why', [statusKey('s')]: 'waiting' }))
  expect(reasonsOf(action)).toEqual({
    do: 'publish',
    key: 'publish',
    patch: patchOf({ [reasonKey('s')]: 'why' }),
    computedFrom: '7',
  })
})

test('the largest annotation is named with its size', () => {
  expect(annotationRoom(nodeWith({ a: 'x', 'example.com/huge': 'y'.repeat(984) }))).toBe(
    'the annotations of the Node have 1002 of 262144 bytes; the largest is example.com/huge with 1000',
  )
})
