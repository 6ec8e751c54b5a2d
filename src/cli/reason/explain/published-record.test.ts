import { expect, test } from 'vitest'
import { journalKey, nodeStateKey, type PublishedWork, reasonsKey, stepKey } from '../../../schemas/annotations.ts'
import { sha256Hex } from '../../../schemas/canonical-json.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { PackageSpec, Skyhook, SkyhookSpec } from '../../../schemas/skyhook.ts'
import { inputsHash, inputsOf } from '../../../stages/model/package-inputs.ts'
import { publishedRecord } from './published-record.ts'

const image = 'registry.test/pkg'
const entryOf = (name: string, stage: string) => ({ name, version: '1.0.0', image, stage, state: 'in_progress' })

/** A node that is at work on packages in these stages, and says that a step of `stepOf` runs. */
function nodeWith(
  stages: Readonly<Record<string, string>>,
  stepOf: string | undefined,
  work: Readonly<Record<string, PublishedWork>> = {},
): KubernetesNode {
  const entries = Object.entries(stages).map(([name, stage]) => [`${name}|1.0.0`, entryOf(name, stage)] as const)
  const state = JSON.stringify(Object.fromEntries(entries))
  const step = { mode: stages[stepOf ?? ''], path: 'run.sh', since: '2026-01-01T00:00:00.000Z', attempt: 1 }
  const annotations = {
    [nodeStateKey('s')]: state,
    [journalKey('s')]: JSON.stringify({ v: 1, rev: 1, sha256: sha256Hex(state), nodeUID: 'n', work }),
    ...(stepOf !== undefined && { [stepKey('s')]: JSON.stringify({ package: `${stepOf}|1.0.0`, ...step }) }),
  }
  return { metadata: { name: 'node1', uid: 'n', resourceVersion: '1', annotations } }
}

const packages = (...names: readonly string[]): Readonly<Record<string, PackageSpec>> =>
  Object.fromEntries(names.map((name) => [name, { version: '1.0.0', image }]))
const skyhookOf = (spec: SkyhookSpec): Skyhook => ({ metadata: { name: 's', uid: 'u', resourceVersion: '1' }, spec })

const facts = {
  hasStarted: true,
  mayRun: true,
  isSuspended: false,
  nowMs: 0,
  bootId: 'b',
  isInterrupting: false,
  evidence: [],
}
const both = { pa: 'apply', pb: 'config' }

test.each<[title: string, node: KubernetesNode, spec: SkyhookSpec, running: readonly string[]]>([
  [
    'packages in a stage are at work',
    nodeWith(both, 'pb'),
    { packages: packages('pa', 'pb') },
    ['pa/apply', 'pb/config'],
  ],
  [
    'of a serial Skyhook the package that the Node reports is at work',
    nodeWith(both, 'pb'),
    { packages: packages('pa', 'pb'), serial: true },
    ['pb/config'],
  ],
  [
    'of a serial Skyhook the first package is at work if the Node reports none',
    nodeWith(both, undefined),
    { packages: packages('pa', 'pb'), serial: true },
    ['pa/apply'],
  ],
  [
    'a step of a package that left the spec has been stopped',
    nodeWith(both, undefined),
    { packages: packages('pb') },
    ['pb/config'],
  ],
  [
    'a step of a package that left the spec runs where work is suspended',
    nodeWith({ pa: 'apply' }, 'pa'),
    {},
    ['pa/apply'],
  ],
])('%s', (_, node, spec, running) => {
  expect(publishedRecord(node, skyhookOf(spec), facts).runningSteps).toEqual(running)
})

test.each<[title: string, spec: SkyhookSpec, uninstall: PackageSpec['uninstall']]>([
  ['a package keeps the policy of its uninstall when it is gone from the spec', {}, { enabled: false }],
  ['a package loses a policy that its spec no longer has', { packages: packages('pa') }, undefined],
])('%s', (_, spec, uninstall) => {
  const node = nodeWith({ pa: 'config' }, undefined, { 'pa|1.0.0': { uninstall: { enabled: false } } })
  expect(publishedRecord(node, skyhookOf(spec), facts).record?.packages['pa|1.0.0']?.uninstall).toEqual(uninstall)
})

test('between two steps nothing runs where work is suspended', () => {
  const skyhook = skyhookOf({ packages: packages('pa', 'pb') })
  const idle = publishedRecord(nodeWith(both, undefined), skyhook, { ...facts, isSuspended: true })
  expect(idle.runningSteps).toEqual([])
  expect(idle.record?.packages['pa|1.0.0']?.progress).toMatchObject({ state: 'running', attempt: { steps: [] } })
})

test('the newest of two versions of a package that are uninstalled goes first', () => {
  const entries = ['1.0.0', '1.1.0'].map((version) => [`pa|${version}`, { ...entryOf('pa', 'uninstall'), version }])
  const state = JSON.stringify(Object.fromEntries(entries))
  const companion = JSON.stringify({ v: 1, rev: 1, sha256: sha256Hex(state), nodeUID: 'n', work: {} })
  const annotations = { [nodeStateKey('s')]: state, [journalKey('s')]: companion }
  const node = { metadata: { name: 'node1', uid: 'n', resourceVersion: '1', annotations } }
  const { packages: found = {} } = publishedRecord(node, skyhookOf({}), facts).record ?? {}
  expect(Object.entries(found).map(([key, { progress }]) => [key, progress.state])).toEqual([
    ['pa|1.1.0', 'running'],
    ['pa|1.0.0', 'due'],
  ])
})

test.each<[title: string, nextTryMs: number | undefined, retryAtMs: number]>([
  ['what failed is tried again at the time on the Node', 5_000, 5_000],
  ['what failed is due if the time of the next attempt on the Node has passed', -5_000, 1],
  ['what failed is due if the Node does not have the time of the next attempt', undefined, 1],
])('%s', (_, nextTryMs, retryAtMs) => {
  const state = JSON.stringify({ 'pa|1.0.0': { ...entryOf('pa', 'config'), state: 'erroring', restarts: 4 } })
  const nextTry = nextTryMs === undefined ? undefined : new Date(nextTryMs).toISOString()
  const reason = { reason: 'StepFailed', message: 'failed', package: 'pa|1.0.0', since: new Date(0).toISOString() }
  const annotations = {
    [nodeStateKey('s')]: state,
    [reasonsKey('s')]: JSON.stringify({ pa: { ...reason, attempts: 4, nextTry } }),
  }
  const node = { metadata: { name: 'node1', uid: 'n', resourceVersion: '1', annotations } }
  const { record } = publishedRecord(node, skyhookOf({ packages: packages('pa') }), facts)
  expect(record?.packages['pa|1.0.0']?.progress).toMatchObject({ state: 'retrying', retryAtMs })
})

test.each<[title: string, version: string, origin: object]>([
  ['an installation that has no slot yet has put nothing on the host', '1.0.0', { untouched: true }],
  ['an installation of a version that the spec does not have was started by another agent', '2.0.0', { adopted: true }],
])('%s', (_, version, origin) => {
  const skyhook = skyhookOf({ packages: { pa: { version, image } } })
  const { record } = publishedRecord(nodeWith({ pa: 'upgrade' }, undefined), skyhook, { ...facts, hasStarted: false })
  expect(record?.packages['pa|1.0.0']).toMatchObject({ ...origin, progress: { state: 'due', stage: 'upgrade' } })
})

const configured = (x: string): PackageSpec => ({ version: '1.0.0', image, configMap: { x }, configInterrupts })
const configInterrupts = { '*': { type: 'reboot' } } as const

test.each<[title: string, present: string, edited: string, isKnown: boolean]>([
  ['a configuration that the Skyhook has now is known', '1', '2', true],
  ['a configuration that the edit brings back is known', '2', '1', true],
  ['a configuration of an earlier edit is a guess', '2', '3', false],
])('%s', (_, present, edited, isKnown) => {
  const work = { 'pa|1.0.0': { inputs: inputsHash(inputsOf(configured('1'))), configInterrupts } }
  const node = nodeWith({ pa: 'config' }, 'pa', work)
  const [now, then] = [present, edited].map((x) => skyhookOf({ packages: { pa: configured(x) } }))
  const guess = now && publishedRecord(node, now, facts, then).guess
  expect(guess === undefined).toBe(isKnown)
})

test.each<[title: string, isSuspended: boolean, stages: Readonly<Record<string, string>>, isKnown: boolean]>([
  ['of two packages in a stage, it is a guess which one is at work where work is suspended', true, both, false],
  ['two packages in a stage are at work where nothing suspends it', false, both, true],
  ['the only package in a stage is at work where work is suspended', true, { pb: 'config' }, true],
])('%s', (_, isSuspended, stages, isKnown) => {
  const inputs = inputsHash(inputsOf({ version: '1.0.0', image }))
  const node = nodeWith(stages, 'pb', { 'pb|1.0.0': { inputs } })
  const { guess } = publishedRecord(node, skyhookOf({ packages: packages('pb') }), { ...facts, isSuspended })
  expect(guess === undefined).toBe(isKnown)
})

test.each<[title: string, state: string, facts: object, expected: object]>([
  ['a package that the operator has installed has no work of this agent', 'complete', {}, { state: 'complete' }],
  [
    'a package that the operator started to install is on the host before it has a slot',
    'in_progress',
    { hasStarted: false },
    { state: 'due' },
  ],
])('%s', (_, published, work, progress) => {
  const state = JSON.stringify({ 'pa|1.0.0': { ...entryOf('pa', 'apply'), state: published } })
  const companion = { v: 1, rev: 1, sha256: sha256Hex(state), nodeUID: 'n', work: { 'pa|1.0.0': { isAdopted: true } } }
  const annotations = { [nodeStateKey('s')]: state, [journalKey('s')]: JSON.stringify(companion) }
  const node = { metadata: { name: 'node1', uid: 'n', resourceVersion: '1', annotations } }
  const { record } = publishedRecord(node, skyhookOf({ packages: packages('pa') }), { ...facts, ...work })
  expect(record?.packages['pa|1.0.0']).toMatchObject({ adopted: true, progress: { ...progress, stage: 'apply' } })
  expect(record?.packages['pa|1.0.0']?.work).toBeUndefined()
})

test('a stage that the operator started is at work once the node is free for it', () => {
  const node = nodeWith({ pa: 'apply' }, undefined, { 'pa|1.0.0': { isAdopted: true } })
  const skyhook = skyhookOf({ packages: packages('pa') })
  expect(publishedRecord(node, skyhook, facts).runningSteps).toEqual(['pa/apply'])
})
