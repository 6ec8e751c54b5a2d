import { plainStep } from '../node-simulator/package-content.ts'
import { emptyJournal } from '../../../src/schemas/journal.ts'
import type { PackageRecord } from '../../../src/schemas/package-record.ts'
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { newPlanBuilder, newSkyhookRecord, type PlanBuilder } from '../../../src/stages/model/plan-builder.ts'
import {
  noOtherOperator,
  known,
  type Preparation,
  type SkyhookView,
  type Snapshot,
} from '../../../src/stages/model/snapshot.ts'
import { readBudget } from '../../../src/schemas/budget.ts'

export const settings = {
  runtimeRequiredTaint: { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' },
  skipNamespaces: [],
  reapplyOnReboot: false,
  ignoreNodeWright: false,
}

/** What an agent knows of an idle node `n` with a usable host: everything, and nothing is there. */
export const idleSnapshot = (change: Partial<Snapshot> = {}): Snapshot => ({
  nowMs: 1_000,
  wallOffsetMs: 0,
  bootId: 'boot-1',
  node: { metadata: { name: 'n', uid: 'node-uid', resourceVersion: '1' } },
  skyhooks: known([]),
  journal: emptyJournal('node-uid'),
  attempts: new Map(),
  preparations: new Map(),
  slots: known([]),
  slotDenials: new Map(),
  distantSkyhooks: new Set(),
  pods: known({ pods: [], since: 'cordoned' }),
  nodeCount: undefined,
  evictedOwners: new Map(),
  hostFolders: new Set(),
  otherOperator: noOtherOperator,
  rolledOutConfigs: new Map(),
  evictions: new Map(),
  interrupts: new Map(),
  statuses: known(new Map()),
  requestedStatuses: new Map(),
  cleanUps: new Map(),
  failures: new Map(),
  host: { state: 'usable' },
  settings,
  ...change,
})

export const viewOf = (spec: SkyhookSpec, name = 's'): SkyhookView => ({
  metadata: { name, uid: `${name}-uid`, generation: 1, resourceVersion: '1' },
  spec,
  budget: readBudget(spec.interruptionBudget),
  stale: false,
})

/** A package whose only steps are one for each of apply and config. */
export const preparedPackage: Extract<Preparation, { state: 'ready' }> = {
  state: 'ready',
  digest: 'sha256:1',
  contentHashes: new Map(),
  config: {
    packageName: 'p',
    packageVersion: '1.0.0',
    expectedConfigFiles: [],
    modes: { apply: [plainStep('run.sh')], config: [plainStep('run.sh')] },
  },
}

/** The plan of a Skyhook `s` in the making, on a node where the image `r/p:1.0.0` is prepared. */
export function builderOf(
  spec: SkyhookSpec,
  entries: readonly PackageRecord[] = [],
  change: Partial<Snapshot> = {},
): PlanBuilder {
  const preparations = new Map(['r/p:1.0.0', 'r/p@sha256:1'].map((key) => [key, preparedPackage]))
  const packages = Object.fromEntries(entries.map((entry) => [`${entry.name}|${entry.version}`, entry]))
  const record = { ...newSkyhookRecord('s-uid'), packages }
  return newPlanBuilder(idleSnapshot({ preparations, ...change }), viewOf(spec), record)
}
