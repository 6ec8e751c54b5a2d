/**
 * Skyhooks in each phase of their lives, recorded: what Argo CD, Flux and kstatus are tested with.
 * `node test/gitops/phases.ts` writes the fixtures; the unit test beside this file fails when they are stale.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { disableKey, pauseKey } from '../../src/schemas/annotations.ts'
import { skyhookTypeMeta } from '../../src/schemas/api.ts'
import type { DeploymentPolicySpec, PolicyKnowledge } from '../../src/schemas/deployment-policy.ts'
import type { PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { entry, type NodeReport } from '../kit/objects/census-objects.ts'
import { record, type RecordedObject, type Recording } from './recorder.ts'

const tuning: PackageSpec = { version: '1.1.0', image: 'registry.example.com/tuning', configMap: { a: '1' } }
const spec: SkyhookSpec = {
  nodeSelectors: { matchLabels: { pool: 'workers' } },
  interruptionBudget: { count: 1 },
  packages: { tuning },
}
const paced: SkyhookSpec = { ...spec, interruptionBudget: {}, deploymentPolicy: 'careful' }
const policySpec: DeploymentPolicySpec = {
  default: { budget: { count: 2 }, strategy: { linear: { failureThreshold: 1 } } },
}
const careful: PolicyKnowledge = { state: 'found', uid: 'policy-uid', generation: 1, spec: policySpec }
const corrected: SkyhookSpec = { ...spec, packages: { tuning: { ...tuning, configMap: { a: '2' } } } }
const uninstalling: SkyhookSpec = { ...spec, packages: { tuning: { ...tuning, uninstall: { enabled: true } } } }

const inPool = { labels: { pool: 'workers' } }
const complete: NodeReport = inPool
const working: NodeReport = {
  ...inPool,
  status: 'in_progress',
  entries: [entry({ stage: 'apply', state: 'in_progress' })],
}
const waiting: NodeReport = {
  ...inPool,
  status: 'waiting',
  entries: [],
  reason: ['WaitingForSlot', 'all 1 slots are held'],
}
const waitingForBatch: NodeReport = { ...waiting, reason: ['WaitingForBatch', 'batch 1 is not over'] }
const rebooting: NodeReport = {
  ...inPool,
  status: 'in_progress',
  entries: [entry({ stage: 'interrupt', state: 'in_progress' })],
  reason: ['RebootPending', 'the host is rebooting'],
}
const failing: NodeReport = {
  ...inPool,
  status: 'erroring',
  entries: [entry({ stage: 'apply', state: 'erroring', restarts: 3 })],
  reason: ['StepFailed', 'package tuning 1.1.0: apply.sh ended with 1'],
}
const failingOnce: NodeReport = { ...failing, entries: [entry({ stage: 'apply', state: 'erroring', restarts: 1 })] }
const retrying: NodeReport = {
  ...inPool,
  status: 'in_progress',
  entries: [entry({ stage: 'apply', state: 'in_progress', restarts: 3 })],
}
const withoutImage = (since: string): NodeReport => ({
  ...waiting,
  reason: ['ImagePull', 'the registry has no such image', { code: 'not-found', since }],
})
const tainted: NodeReport = { ...waiting, status: 'blocked', reason: ['TaintNotTolerated', 'taint example.com/gpu'] }

const names = ['n1', 'n2', 'n3'] as const
const reportAll = (recording: Recording, ...reports: readonly NodeReport[]): void =>
  reports.forEach((report, at) => recording.report(names[at] ?? 'n4', report))

async function completeFirst(recording: Recording): Promise<void> {
  reportAll(recording, complete, complete, complete)
  await recording.turn(3)
}

type Phase = { readonly spec?: SkyhookSpec; readonly script: Parameters<typeof record>[1] }

/** One census turn or more with these reports of n1, n2 and n3. */
const reported =
  (...reports: readonly NodeReport[]): Phase['script'] =>
  async (recording) => {
    reportAll(recording, ...reports)
    await recording.turn(3)
  }

/** By name of the fixture. */
const phases: Readonly<Record<string, Phase>> = {
  fresh: { script: () => undefined },
  working: { script: reported(working, waiting, waiting) },
  'waiting-for-slot': { script: reported(waiting, waiting, waiting) },
  'waiting-for-batch': {
    spec: paced,
    script: async (recording) => {
      recording.setPolicy(careful)
      reportAll(recording, waitingForBatch, waitingForBatch, waitingForBatch)
      await recording.turn(2)
      await recording.takeSlot('finished')
      reportAll(recording, complete, waitingForBatch, waitingForBatch)
      await recording.turn(3)
    },
  },
  rebooting: { script: reported(complete, rebooting, waiting) },
  'between-nodes': { script: reported(complete, waiting, waiting) },
  'agents-silent': {
    script: async (recording) => {
      reportAll(recording, complete, complete, working)
      await recording.turn(2)
      recording.setAgent('n3', 'silent')
      await recording.turn(3)
    },
  },
  paused: {
    script: async (recording) => {
      reportAll(recording, complete, waiting, waiting)
      await recording.turn(2)
      await recording.annotate({ [pauseKey]: 'true' })
      const paused: NodeReport = { ...waiting, status: 'paused', reason: ['Paused', 'the Skyhook is paused'] }
      reportAll(recording, complete, paused, paused)
      await recording.turn(3)
    },
  },
  disabled: {
    script: async (recording) => {
      reportAll(recording, complete, waiting, waiting)
      await recording.turn(2)
      await recording.annotate({ [disableKey]: 'true' })
      const disabled: NodeReport = { ...waiting, status: 'disabled', reason: ['Disabled', 'the Skyhook is disabled'] }
      reportAll(recording, complete, disabled, disabled)
      await recording.turn(3)
    },
  },
  'failed-once': { script: reported(complete, failingOnce, waiting) },
  failed: { spec: { ...spec, interruptionBudget: { count: 2 } }, script: reported(complete, failing, failing) },
  retrying: { spec: { ...spec, interruptionBudget: { count: 2 } }, script: reported(complete, retrying, failing) },
  'image-missing-at-first': { script: reported(complete, withoutImage('2026-11-20T13:59:00Z'), waiting) },
  'image-missing': { script: reported(complete, complete, withoutImage('2026-11-20T13:58:00Z')) },
  blocked: { script: reported(complete, tainted, tainted) },
  'budget-held-by-failures': { script: reported(failing, waiting, waiting) },
  'rollout-stopped': {
    spec: paced,
    script: async (recording) => {
      recording.setPolicy(careful)
      reportAll(recording, waitingForBatch, waitingForBatch, waitingForBatch)
      await recording.turn(2)
      await recording.takeSlot('failed')
      reportAll(recording, failing, waitingForBatch, waitingForBatch)
      await recording.turn(5)
    },
  },
  'policy-missing': {
    spec: paced,
    script: async (recording) => {
      recording.setPolicy({ state: 'missing' })
      reportAll(recording, waiting, waiting, waiting)
      await recording.turn(125)
    },
  },
  'invalid-spec': {
    spec: { ...spec, packages: { tuning: { ...tuning, dependsOn: { tuning: '1.1.0' } } } },
    script: reported(waiting, waiting, waiting),
  },
  complete: { script: completeFirst },
  'no-nodes': { script: reported() },
  edited: {
    script: async (recording) => {
      await completeFirst(recording)
      await recording.edit(corrected)
    },
  },
  'edited-and-reverted': {
    script: async (recording) => {
      await completeFirst(recording)
      await recording.edit(corrected)
      await recording.turn(0.5)
      await recording.edit(spec)
      await recording.turn(0.5)
    },
  },
  corrected: {
    script: async (recording) => {
      reportAll(recording, complete, failing, complete)
      await recording.turn(3)
      await recording.edit(corrected)
      await recording.turn(0.5)
    },
  },
  'node-joined': {
    script: async (recording) => {
      await completeFirst(recording)
      recording.report('n4', { ...inPool, status: '' })
      await recording.turn(3)
    },
  },
  deleting: {
    spec: uninstalling,
    script: async (recording) => {
      await completeFirst(recording)
      await recording.remove()
      await recording.turn(3)
    },
  },
  'deletion-blocked': {
    spec: uninstalling,
    script: async (recording) => {
      await completeFirst(recording)
      await recording.annotate({ [pauseKey]: 'true' })
      await recording.remove()
      await recording.turn(3)
    },
  },
}

/** Objects that no census writes. */
const others = ['fresh-without-default', 'deployment-policy'] as const

/** Names of all fixtures. */
export const recordedNames: readonly string[] = [...Object.keys(phases), ...others]

/** The object of that name, recorded now. */
export async function recordedObject(name: string): Promise<RecordedObject> {
  if (name === 'deployment-policy')
    return {
      apiVersion: skyhookTypeMeta.apiVersion,
      kind: 'DeploymentPolicy',
      metadata: { name: 'careful', generation: 1 },
      spec: policySpec,
    }
  if (name === 'fresh-without-default') {
    // as an earlier definition shows it
    const { status: _, ...withoutStatus } = await recordedObject('fresh')
    return withoutStatus
  }
  const phase = phases[name]
  const last = phase && (await record(phase.spec ?? spec, phase.script)).at(-1)
  if (last === undefined) throw new Error(`no phase is called ${name}`)
  return last
}

/** A rollout over three nodes with budget 1: each reboots, and the census changes hands in the middle. */
export async function recordedRollout(): Promise<readonly RecordedObject[]> {
  return await record(spec, async (recording) => {
    const states: NodeReport[] = [waiting, waiting, waiting]
    const set = async (at: number, state: NodeReport): Promise<void> => {
      states[at] = state
      reportAll(recording, ...states)
      await recording.turn(1)
    }
    await recording.turn(1)
    for (const at of names.keys()) {
      for (const state of [waiting, working, rebooting, working, complete]) await set(at, state)
      recording.elect()
      await recording.turn(1)
    }
  })
}

/** The fixture of an object. */
export const fixtureText = (object: RecordedObject): string =>
  stringify(object, { lineWidth: 120, aliasDuplicateObjects: false })

export const fixturePath = (name: string): string =>
  join(import.meta.dirname, '..', 'fixtures', 'gitops', `${name}.yaml`)

/** The object of that name as the fixture has it. */
export const readFixture = (name: string): RecordedObject =>
  parse(readFileSync(fixturePath(name), 'utf8')) as RecordedObject

if (import.meta.main)
  for (const name of recordedNames) writeFileSync(fixturePath(name), fixtureText(await recordedObject(name)))
