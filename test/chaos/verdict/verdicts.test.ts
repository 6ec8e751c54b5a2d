import { expect, test } from 'vitest'
import { namespace, protectedLabels } from '../protected-pods.ts'
import { judgeBoots } from './boots.ts'
import { judgeCordons } from './cordons.ts'
import type { Finding } from './evidence.ts'
import { judgeEvictions, judgeProtectedPods } from './pods.ts'
import { judgeReady } from './ready-true.ts'
import { judgeRates, maxRequestsPerMinute } from './request-rates.ts'
import { createSample, skyhook } from './sample-evidence.ts'
import { judgeSilence } from './silence.ts'
import { judgeStepsOnce } from './steps-once.ts'

const node = 'node-1'
const texts = ({ violations }: Finding): string[] => violations.map(({ text }) => text)

test("an agent that lifts an administrator's cordon is found", () => {
  const sample = createSample(node)
  sample.node(1, node, {})
  sample.node(2, node, { cordoned: true, own: true })
  sample.node(3, node, { cordoned: false })
  expect(texts(judgeCordons(sample.evidence()))).toContain('node-1 was uncordoned against the administrator')
})

test('an agent may lift its own cordon, and one that the administrator has lifted', () => {
  const sample = createSample(node)
  sample.node(1, node, { marked: true })
  sample.node(2, node, {})
  sample.node(3, node, { cordoned: true, own: true })
  sample.node(4, node, { cordoned: false, own: true })
  expect(texts(judgeCordons(sample.evidence()))).toEqual([])
})

test('an uncordon by the administrator that changes nothing does not make an agent’s cordon his', () => {
  const sample = createSample(node)
  sample.node(1, node, {})
  sample.node(2, node, { marked: true, own: true })
  sample.node(3, node, {})
  expect(texts(judgeCordons(sample.evidence()))).toEqual([])
})

test('a node that stays cordoned at the end is found', () => {
  const sample = createSample(node)
  sample.node(1, node, { marked: true })
  expect(texts(judgeCordons(sample.evidence()))).toEqual(['at the end node-1 is still cordoned'])
})

const pod = (name: string, labels: Readonly<Record<string, string>>) => ({
  metadata: { name, namespace, uid: name, resourceVersion: '', labels },
  spec: { nodeName: node },
  status: { phase: 'Running' },
})

test('an agent that deletes a pod or evicts a protected one is found, an eviction of another is not', () => {
  const sample = createSample(node)
  sample.pod(1, pod('guarded', protectedLabels))
  const evict = { verb: 'create', resource: 'pods', subresource: 'eviction', namespace }
  sample.request(2, node, { ...evict, name: 'web' })
  expect(texts(judgeEvictions(sample.evidence()))).toEqual([])
  sample.request(3, node, { ...evict, name: 'guarded' })
  sample.request(4, node, { verb: 'delete', resource: 'pods', namespace, name: 'web' })
  expect(texts(judgeEvictions(sample.evidence()))).toEqual([
    'pod guarded was evicted by the agent of node-1 (answer 200)',
    'pod web was deleted by the agent of node-1 (answer 200)',
  ])
})

test('an interrupt beside a protected pod is found, unless the pod has just appeared', () => {
  const late = createSample(node)
  late.pod(9, pod('guarded', protectedLabels))
  late.slot(10, node, 0, 'rebooting')
  expect(judgeProtectedPods(late.evidence())).toEqual({ checked: 1, violations: [] })
  const early = createSample(node)
  early.pod(1, pod('guarded', protectedLabels))
  early.slot(10, node, 0, 'rebooting')
  expect(texts(judgeProtectedPods(early.evidence()))).toHaveLength(1)
})

test('a step that completes twice is found', () => {
  const sample = createSample(node)
  sample.node(0, node, {})
  sample.step(1, node)
  sample.step(2, node, 'config')
  expect(judgeStepsOnce(sample.evidence())).toEqual({ checked: 2, violations: [] })
  sample.step(3, node)
  expect(texts(judgeStepsOnce(sample.evidence()))).toHaveLength(1)
})

test('a node without a reason for more than a minute is silent; one with a reason waits', () => {
  const silent = createSample(node)
  silent.skyhook(0, {})
  silent.node(1, node, {})
  silent.skyhook(70, {})
  expect(texts(judgeSilence(silent.evidence()))).toEqual([`node-1 is in_progress for ${skyhook} and silent for 69 s`])
  const waiting = createSample(node)
  waiting.skyhook(0, {})
  waiting.node(1, node, { reason: 'DrainBlocked' })
  waiting.skyhook(70, {})
  expect(texts(judgeSilence(waiting.evidence()))).toEqual([])
})

test('a disturbance of the node starts the minute of silence again', () => {
  const sample = createSample(node)
  sample.skyhook(0, {})
  sample.node(1, node, {})
  sample.action(30, 'agent killed', node)
  sample.skyhook(70, {})
  expect(texts(judgeSilence(sample.evidence()))).toEqual([])
})

test('a node that says Paused long after the pause is found', () => {
  const sample = createSample(node)
  sample.skyhook(0, {})
  sample.node(1, node, { reason: 'Paused' })
  sample.skyhook(50, {})
  expect(texts(judgeSilence(sample.evidence()))).toEqual([`node-1 says Paused for ${skyhook}, which is not true`])
})

test('an agent in a hot loop is found by its requests', () => {
  const sample = createSample(node)
  for (let i = 0; i < maxRequestsPerMinute; i++) sample.request(i / 100, node, { resource: 'skyhooks', name: skyhook })
  expect(texts(judgeRates(sample.evidence()))).toEqual([])
  sample.request(10, node, { resource: 'leases', verb: 'list' })
  expect(texts(judgeRates(sample.evidence()))).toHaveLength(1)
})

test('requests that are spread over more than a minute are not a hot loop', () => {
  const sample = createSample(node)
  for (let i = 0; i <= maxRequestsPerMinute; i++) sample.request(i / 5, node, { resource: 'skyhooks', name: skyhook })
  expect(texts(judgeRates(sample.evidence()))).toEqual([])
})

test('a Skyhook that is Ready while a node works is found', () => {
  const sample = createSample(node)
  sample.skyhook(0, {})
  sample.node(1, node, { status: 'in_progress' })
  const conditions = [{ type: 'Ready', status: 'True', observedGeneration: 3, lastTransitionTime: '', reason: '' }]
  sample.skyhook(60, {}, { status: { conditions } })
  expect(texts(judgeReady(sample.evidence()))).toEqual([
    `${skyhook} became Ready at generation 3 while node-1 was in_progress`,
  ])
})

test('a reboot without a slot or a fault is found', () => {
  const sample = createSample(node)
  sample.node(1, node, { boot: 'a' })
  sample.slot(2, node, 0, 'rebooting')
  sample.node(10, node, { boot: 'b' })
  sample.action(300, 'power cut', node)
  sample.node(301, node, { boot: 'c' })
  expect(judgeBoots(sample.evidence())).toEqual({ checked: 2, violations: [] })
  sample.node(600, node, { boot: 'd' })
  expect(texts(judgeBoots(sample.evidence()))).toEqual(['node-1 rebooted for no known cause'])
})
