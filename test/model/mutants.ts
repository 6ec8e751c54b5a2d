import {
  isRetrying,
  isRunning,
  type Journal,
  type PackageRecord,
  type RetryingPackage,
  type SkyhookRecord,
} from '../../src/schemas/journal.ts'
import type { PackageSpec, StageName } from '../../src/schemas/skyhook.ts'
import { decide } from '../../src/stages/decide.ts'
import { isOnlyConditionalInterruptPending } from '../../src/stages/interrupt/pending.ts'
import { inputsHash, inputsOf } from '../../src/stages/model/package-inputs.ts'
import { recordSteps } from '../../src/stages/model/transitions.ts'
import type { Action, Plan } from '../../src/stages/model/plan.ts'
import {
  type OwnSlot,
  type SkyhookView,
  type Snapshot,
  type SpecVersions,
  known,
} from '../../src/stages/model/snapshot.ts'
import { versionsOf } from '../../src/stages/skyhook/slot.ts'
import { isSelected } from '../../src/stages/skyhook/gates.ts'
import type { Features } from './scenario.ts'
import type { Decide } from '../kit/node-simulator/node-simulator.ts'

/** Decisions that look right and are not: each is the real one with one fault, in what it sees or in its plan. */
type Mutant = { readonly mutant: Decide; readonly expectedViolation: RegExp; readonly needs?: Partial<Features> }

const mutateSnapshot =
  (mutate: (snapshot: Snapshot) => Snapshot): Decide =>
  (snapshot, reasons) =>
    decide(mutate(snapshot), reasons)

/** `admittedUnder`: the present spec of the slot's Skyhook. */
const mutateSlots = (mutate: (slot: OwnSlot, admittedUnder: SpecVersions | undefined) => OwnSlot): Decide =>
  mutateSnapshot((snapshot) => {
    const { slots, skyhooks } = snapshot
    if (!slots.known || !skyhooks.known) return snapshot
    const versionsFor = ({ skyhookUid }: OwnSlot): SpecVersions | undefined => {
      const view = skyhooks.value.find(({ metadata }) => metadata.uid === skyhookUid)
      return view && versionsOf(view)
    }
    return { ...snapshot, slots: known(slots.value.map((slot) => mutate(slot, versionsFor(slot)))) }
  })

const mutatePlan =
  (mutate: (plan: Plan, snapshot: Snapshot) => Plan): Decide =>
  (snapshot, reasons) =>
    mutate(decide(snapshot, reasons), snapshot)

const withAllAnswers = (snapshot: Snapshot, interrupt: boolean): Snapshot => ({
  ...snapshot,
  requestedStatuses: new Map(
    [...snapshot.requestedStatuses].map(([requestId, read]) => [
      requestId,
      read.state === 'read'
        ? { ...read, status: { ...read.status, requests: { ...read.status.requests, interrupt } } }
        : read,
    ]),
  ),
})

const mapViews = (snapshot: Snapshot, change: (view: SkyhookView) => SkyhookView): Snapshot => ({
  ...snapshot,
  skyhooks: snapshot.skyhooks.known ? known(snapshot.skyhooks.value.map(change)) : snapshot.skyhooks,
})

const mapPackages = (
  journal: Journal,
  change: (entry: PackageRecord, record: SkyhookRecord) => PackageRecord,
): Journal => ({
  ...journal,
  skyhooks: Object.fromEntries(
    Object.entries(journal.skyhooks).map(([name, record]) => [
      name,
      {
        ...record,
        packages: Object.fromEntries(
          Object.entries(record.packages).map(([key, entry]) => [key, change(entry, record)]),
        ),
      },
    ]),
  ),
})

/** What only the Node remembers then. */
function withoutCordon({ cordon: _cordon, ...journal }: Journal): Journal {
  return journal
}

/** As they are in the journal, by Skyhook. */
const entriesOf = ({ journal }: Snapshot, skyhook: string): readonly PackageRecord[] =>
  Object.values(journal.skyhooks[skyhook]?.packages ?? {})

/** Packages in the stage appear with the configuration that it began with. */
const ignoringCorrections = (stage: StageName): Decide =>
  mutateSnapshot((snapshot) =>
    mapViews(snapshot, (view) => {
      const packages = Object.entries(view.spec.packages ?? {}).map(([name, spec]) => {
        const atStage = entriesOf(snapshot, view.metadata.name).find(
          (entry) => entry.name === name && entry.progress.stage === stage && entry.progress.state !== 'complete',
        )
        const started = atStage?.config?.started
        return [name, started ? { ...spec, configMap: started.config, env: started.env } : spec] as const
      })
      return { ...view, spec: { ...view.spec, packages: Object.fromEntries(packages) } }
    }),
  )

/** Uninstalls that failed appear as `change` makes them. */
const mutateFailedUninstalls = (
  change: (entry: RetryingPackage, spec: PackageSpec | undefined) => PackageRecord,
): Decide =>
  mutateSnapshot((snapshot) => ({
    ...snapshot,
    journal: mapPackages(snapshot.journal, (entry, { uid }) => {
      if (!isRetrying(entry) || entry.progress.stage !== 'uninstall') return entry
      const views = snapshot.skyhooks.known ? snapshot.skyhooks.value : []
      return change(entry, views.find(({ metadata }) => metadata.uid === uid)?.spec.packages?.[entry.name])
    }),
  }))

/** They make no difference but for steps that fail until they are corrected. */
export const correctionMutants: Readonly<Record<string, Mutant>> = {
  'does not let a correction reach a failing post-interrupt': {
    mutant: ignoringCorrections('post-interrupt'),
    expectedViolation: /never complete/,
  },
  'does not let a correction reach a failing interrupt': {
    mutant: ignoringCorrections('interrupt'),
    expectedViolation: /complete/,
  },
  'does not let a correction reach a failing uninstall': {
    mutant: mutateFailedUninstalls((entry, spec) => {
      const { progress } = entry
      const inputs = spec ? inputsHash(inputsOf(spec)) : progress.attempt.inputs
      return { ...entry, progress: { ...progress, attempt: { ...progress.attempt, inputs } } }
    }),
    expectedViolation: /never complete/,
  },
  'retries the uninstall of a removed package forever': {
    mutant: mutateFailedUninstalls((entry) => ({ ...entry, restarts: 0 })),
    expectedViolation: /never complete/,
  },
  'leaves a package behind after its first failed uninstall': {
    mutant: mutateFailedUninstalls((entry) => ({ ...entry, restarts: entry.restarts + 2 })),
    expectedViolation: /is left behind after 1 failed uninstalls/,
  },
  'takes the files of a package for right because an earlier step was skipped': {
    mutant: mutatePlan((plan) => ({
      ...plan,
      actions: plan.actions.map((action) => {
        if (action.do !== 'startStep') return action
        const { steps } = action.record.progress.attempt
        return { ...action, needsCopyDir: action.needsCopyDir && steps.every(({ result }) => result === undefined) }
      }),
    })),
    expectedViolation: /never complete/,
  },
  'forgets a package whose first step failed': {
    mutant: mutateSnapshot((snapshot) => ({
      ...snapshot,
      journal: mapPackages(snapshot.journal, (entry) =>
        isRetrying(entry) && entry.progress.stage === 'apply' ? { ...entry, untouched: true } : entry,
      ),
    })),
    expectedViolation: /was not uninstalled|complete is published/,
  },
}

export const mutants: Readonly<Record<string, Mutant>> = {
  'treats a granted slot as confirmed': {
    mutant: mutateSlots((slot, admittedUnder) => ({ ...slot, ownership: 'confirmed', admittedUnder })),
    expectedViolation: /without a confirmed slot/,
  },
  'takes the confirmation of an earlier spec for one of the present spec': {
    mutant: mutateSlots((slot, admittedUnder) => ({ ...slot, admittedUnder })),
    expectedViolation: /without a confirmed slot/,
  },
  'lets a node that gave its slot back continue without asking': {
    mutant: mutatePlan((plan, snapshot) => ({
      ...plan,
      journal: {
        ...plan.journal,
        skyhooks: Object.fromEntries(
          Object.entries(plan.journal.skyhooks).map(([name, record]) => {
            const lifecycle = snapshot.journal.skyhooks[name]?.lifecycle
            const isLeft = lifecycle !== undefined && snapshot.node.metadata.labels?.['pool'] !== 'x'
            return [name, isLeft ? { ...record, lifecycle } : record] as const
          }),
        ),
      },
    })),
    expectedViolation: /taken without asking, after the node gave one back/,
  },
  'goes by a spec that is known to be outdated': {
    mutant: mutateSnapshot((snapshot) => mapViews(snapshot, (view) => ({ ...view, stale: false }))),
    expectedViolation: /by an outdated spec/,
  },
  'lets a node leave by a spec that is known to be outdated': {
    mutant: mutateSnapshot((snapshot) =>
      mapViews(snapshot, (view) => (isSelected(view, snapshot) ? view : { ...view, stale: false })),
    ),
    expectedViolation: /(cordon|slot) of s goes by an outdated spec/,
  },
  'treats unknown pods as no pods': {
    mutant: mutateSnapshot((snapshot) => ({
      ...snapshot,
      pods: snapshot.pods.known ? snapshot.pods : known({ pods: [], since: 'cordoned' }),
    })),
    expectedViolation: /before the node is drained/,
  },
  'ignores protected pods': {
    mutant: mutateSnapshot((snapshot) => ({
      ...snapshot,
      pods: snapshot.pods.known
        ? known({
            ...snapshot.pods.value,
            pods: snapshot.pods.value.pods.filter(({ metadata }) => metadata.labels?.['workload'] === undefined),
          })
        : snapshot.pods,
    })),
    expectedViolation: /before the node is drained/,
  },
  'ignores dependencies': {
    mutant: mutateSnapshot((snapshot) =>
      mapViews(snapshot, (view) => ({
        ...view,
        spec: {
          ...view.spec,
          packages: Object.fromEntries(
            Object.entries(view.spec.packages ?? {}).map(([name, { dependsOn: _dependsOn, ...spec }]) => [name, spec]),
          ),
        },
      })),
    ),
    expectedViolation: /on which it depends, is complete/,
  },
  'runs the packages of a serial Skyhook concurrently': {
    mutant: mutateSnapshot((snapshot) =>
      mapViews(snapshot, (view) => ({ ...view, spec: { ...view.spec, serial: false } })),
    ),
    expectedViolation: /serial/,
  },
  'ignores a pause': {
    mutant: mutateSnapshot((snapshot) =>
      mapViews(snapshot, (view) => ({ ...view, metadata: { ...view.metadata, annotations: {} } })),
    ),
    expectedViolation: /while paused/,
  },
  'forgets the results of steps': {
    mutant: mutatePlan((plan) => ({
      ...plan,
      journal: mapPackages(plan.journal, (entry) =>
        isRunning(entry) && entry.progress.attempt.steps.length > 1
          ? recordSteps(entry, { ...entry.progress.attempt, steps: [] })
          : entry,
      ),
    })),
    expectedViolation: /runs again|started twice|differs?|does not settle/,
  },
  'completes a package after its apply': {
    mutant: mutatePlan((plan) => ({
      ...plan,
      journal: mapPackages(plan.journal, (entry) => {
        const { state, stage } = entry.progress
        const isApplied = stage === 'apply' && state === 'complete'
        return {
          ...entry,
          pendingInterrupt: undefined,
          progress: isApplied ? { state, stage: 'config' } : entry.progress,
        } as PackageRecord
      }),
    })),
    expectedViolation: /complete is published|never complete|differs?/,
  },
  'forgets a pending interrupt': {
    mutant: mutatePlan((plan) => ({
      ...plan,
      journal: mapPackages(plan.journal, (entry) => ({ ...entry, pendingInterrupt: undefined })),
    })),
    expectedViolation: /complete is published|differs?/,
  },
  'reads from every package that it requires no interrupt': {
    mutant: mutateSnapshot((snapshot) => withAllAnswers(snapshot, false)),
    expectedViolation: /complete is published|is complete$|is complete\n/,
  },
  'reads from every package that it requires an interrupt': {
    mutant: mutateSnapshot((snapshot) => withAllAnswers(snapshot, true)),
    expectedViolation: /an interrupt runs that no package requires/,
  },
  'asks again until the required interrupt starts': {
    mutant: mutatePlan((plan, snapshot) => ({
      ...plan,
      journal: mapPackages(plan.journal, (entry) =>
        isOnlyConditionalInterruptPending(entry) && snapshot.nowMs % 5 === 0
          ? { ...entry, pendingInterrupt: entry.pendingInterrupt && { ...entry.pendingInterrupt, requiredInBoot: '' } }
          : entry,
      ),
    })),
    expectedViolation: /runs after config|complete is published|differs?/,
  },
  'runs steps and interrupts at the same time': {
    mutant: mutateSnapshot((snapshot) => ({
      ...snapshot,
      journal: {
        ...snapshot.journal,
        skyhooks: Object.fromEntries(
          Object.entries(snapshot.journal.skyhooks).map(([name, { interrupt: _interrupt, ...record }]) => [
            name,
            record,
          ]),
        ),
      },
    })),
    expectedViolation: /node-1 (starts|restarts|asks for a reboot) .*while|differs?|never complete|does not settle/,
  },
  'releases the slot in the decision that completes': {
    mutant: (snapshot, reasons) => {
      const plan = decide(snapshot, reasons)
      const isDone = (name: string): boolean =>
        plan.journal.skyhooks[name]?.published?.status === 'complete' &&
        snapshot.journal.skyhooks[name]?.published?.status !== 'complete'
      const done = snapshot.slots.known ? snapshot.slots.value.filter(({ skyhook }) => isDone(skyhook)) : []
      return {
        ...plan,
        actions: [
          ...done.map((slot): Action => ({ do: 'releaseSlot', key: `slot/${slot.skyhook}`, slot })),
          ...plan.actions,
        ],
      }
    },
    expectedViolation: /gives back .* while its Node (carries the cordon mark|says)|differs?/,
  },
  'leaves its cordon behind': {
    mutant: mutatePlan((plan) => ({
      ...plan,
      actions: plan.actions.map((action) => {
        if (action.do !== 'publish' || action.patch.unschedulable !== false) return action
        const { unschedulable: _unschedulable, ...patch } = action.patch
        return { ...action, patch }
      }),
    })),
    expectedViolation: /unschedulable should be|neither a mark nor an administrator says why/,
  },
  'uncordons a node that an administrator cordoned': {
    mutant: mutateSnapshot((snapshot) => ({
      ...snapshot,
      journal: withoutCordon(snapshot.journal),
      node: {
        ...snapshot.node,
        metadata: {
          ...snapshot.node.metadata,
          annotations: Object.fromEntries(
            Object.entries(snapshot.node.metadata.annotations ?? {}).filter(
              ([key]) => key !== 'skyhook.nvidia.com/cordoned-before',
            ),
          ),
        },
      },
    })),
    expectedViolation:
      /takes off the cordon that an administrator set|unschedulable should be|differs?|does not settle/,
  },
  'has the cordon of its work on the Node alone': {
    mutant: mutatePlan((plan) => ({ ...plan, journal: withoutCordon(plan.journal) })),
    needs: { isForgetful: true },
    expectedViolation: /the cordon that the Node lost does not come back|unschedulable should be/,
  },
  'publishes complete too early': {
    mutant: mutatePlan((plan, snapshot) => ({
      ...plan,
      actions: plan.actions.map((action) => {
        if (action.do !== 'publish' || !('skyhook.nvidia.com/status_s' in action.patch.annotations)) return action
        const view = snapshot.skyhooks.known ? snapshot.skyhooks.value[0] : undefined
        if (!view) return action
        return {
          ...action,
          patch: {
            ...action.patch,
            annotations: { ...action.patch.annotations, 'skyhook.nvidia.com/status_s': 'complete' },
          },
        }
      }),
    })),
    expectedViolation: /complete is published|does not settle/,
  },
  'occasionally runs a complete package again': {
    mutant: mutateSnapshot((snapshot) => ({
      ...snapshot,
      journal: mapPackages(snapshot.journal, (entry) =>
        entry.config?.finished && entry.progress.state === 'complete' && snapshot.nowMs % 7 === 0
          ? { ...entry, progress: { state: 'complete', stage: 'apply' } }
          : entry,
      ),
    })),
    expectedViolation: /although the package was complete|never complete|differs?/,
  },
  'never stops a step that is no longer wanted': {
    mutant: mutatePlan((plan) => ({
      ...plan,
      journal: {
        ...plan.journal,
        skyhooks: Object.fromEntries(
          Object.entries(plan.journal.skyhooks).map(([name, { canceling: _stopping, ...record }]) => [name, record]),
        ),
      },
    })),
    expectedViolation: /beside another step|differs?/,
  },
  'increases a revision in every decision': {
    mutant: mutatePlan((plan) => ({
      ...plan,
      journal: {
        ...plan.journal,
        skyhooks: Object.fromEntries(
          Object.entries(plan.journal.skyhooks).map(([name, record]) => [name, { ...record, rev: record.rev + 1 }]),
        ),
      },
    })),
    expectedViolation: /decided again, the journal differs/,
  },
}
