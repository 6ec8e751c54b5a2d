import { isRunning, type Journal, type PackageRecord, type SkyhookRecord } from '../../src/schemas/journal.ts'
import { decide } from '../../src/stages/decide.ts'
import { isOnlyConditionalInterruptPending } from '../../src/stages/interrupt/pending.ts'
import { recordSteps } from '../../src/stages/model/transitions.ts'
import type { Action, Plan } from '../../src/stages/model/plan.ts'
import { type SkyhookView, type Snapshot, known } from '../../src/stages/model/snapshot.ts'
import type { Decide } from '../support/node-simulator.ts'

/** Decisions that look right and are not: each is the real one with one fault, in what it sees or in its plan. */
type Mutant = { readonly mutant: Decide; readonly expectedViolation: RegExp }

const mutateSnapshot =
  (mutate: (snapshot: Snapshot) => Snapshot): Decide =>
  (snapshot, reasons) =>
    decide(mutate(snapshot), reasons)

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

export const mutants: Readonly<Record<string, Mutant>> = {
  'treats a granted slot as confirmed': {
    mutant: mutateSnapshot((snapshot) => ({
      ...snapshot,
      slots: snapshot.slots.known
        ? known(snapshot.slots.value.map((slot) => ({ ...slot, confirmed: true })))
        : snapshot.slots,
    })),
    expectedViolation: /without a confirmed slot/,
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
    expectedViolation:
      /while an interrupt is under way|an interrupt runs while|differs?|never complete|does not settle/,
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
    expectedViolation: /the slot of .* goes before|differs?/,
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
    expectedViolation: /unschedulable should be/,
  },
  'uncordons a node that an administrator cordoned': {
    mutant: mutateSnapshot((snapshot) => ({
      ...snapshot,
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
    expectedViolation: /unschedulable should be|differs?|does not settle/,
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
    expectedViolation: /complete is published|before completion|does not settle/,
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
