import type { Journal, PackageRecord, SkyhookRecord } from '../../src/schemas/journal.ts'
import { decide } from '../../src/stages/decide.ts'
import type { Action, Plan } from '../../src/stages/model/plan.ts'
import type { SkyhookView, World } from '../../src/stages/model/snapshot.ts'
import { known } from '../../src/stages/model/snapshot.ts'
import type { Decide } from './faulty-node.ts'

/** Decisions that look right and are not: each is ours with one fault, on what it sees or on what it says. */
type Wrong = { readonly wrong: Decide; readonly says: RegExp }

const seeing =
  (see: (world: World) => World): Decide =>
  (world, reasons) =>
    decide(see(world), reasons)

const saying =
  (say: (plan: Plan, world: World) => Plan): Decide =>
  (world, reasons) =>
    say(decide(world, reasons), world)

const answering = (world: World, interrupt: boolean): World => ({
  ...world,
  answers: new Map(
    [...world.answers].map(([question, read]) => [
      question,
      read.state === 'read' ? { ...read, status: { ...read.status, requests: { ...read.status.requests, interrupt } } } : read,
    ]),
  ),
})

const viewsChanged = (world: World, change: (view: SkyhookView) => SkyhookView): World => ({
  ...world,
  skyhooks: world.skyhooks.known ? known(world.skyhooks.value.map(change)) : world.skyhooks,
})

const packagesChanged = (journal: Journal, change: (entry: PackageRecord, record: SkyhookRecord) => PackageRecord): Journal => ({
  ...journal,
  skyhooks: Object.fromEntries(
    Object.entries(journal.skyhooks).map(([name, record]) => [
      name,
      { ...record, packages: Object.fromEntries(Object.entries(record.packages).map(([key, entry]) => [key, change(entry, record)])) },
    ]),
  ),
})

export const WRONG_DECISIONS: Readonly<Record<string, Wrong>> = {
  'takes a granted slot for a confirmed one': {
    wrong: seeing((world) => ({
      ...world,
      slots: world.slots.known ? known(world.slots.value.map((slot) => ({ ...slot, confirmed: true }))) : world.slots,
    })),
    says: /without a confirmed slot/,
  },
  'takes pods that it does not know for none': {
    wrong: seeing((world) => ({ ...world, pods: world.pods.known ? world.pods : known({ pods: [], since: 'cordoned' }) })),
    says: /before the node is drained/,
  },
  'does not see protected pods': {
    wrong: seeing((world) => ({
      ...world,
      pods: world.pods.known
        ? known({ ...world.pods.value, pods: world.pods.value.pods.filter(({ metadata }) => metadata.labels?.['workload'] === undefined) })
        : world.pods,
    })),
    says: /before the node is drained/,
  },
  'does not look at dependencies': {
    wrong: seeing((world) =>
      viewsChanged(world, (view) => ({
        ...view,
        spec: {
          ...view.spec,
          packages: Object.fromEntries(
            Object.entries(view.spec.packages ?? {}).map(([name, { dependsOn: _dependsOn, ...spec }]) => [name, spec]),
          ),
        },
      })),
    ),
    says: /on which it depends, is complete/,
  },
  'runs the packages of a serial Skyhook side by side': {
    wrong: seeing((world) => viewsChanged(world, (view) => ({ ...view, spec: { ...view.spec, serial: false } }))),
    says: /serial/,
  },
  'does not hear a pause': {
    wrong: seeing((world) => viewsChanged(world, (view) => ({ ...view, metadata: { ...view.metadata, annotations: {} } }))),
    says: /while paused/,
  },
  'forgets what a step came to': {
    wrong: saying((plan) => ({
      ...plan,
      journal: packagesChanged(plan.journal, (entry) =>
        entry.attempt && entry.attempt.steps.length > 1 ? { ...entry, attempt: { ...entry.attempt, steps: [] } } : entry,
      ),
    })),
    says: /runs again|started twice|differs?|does not settle/,
  },
  'takes apply for all there is to do': {
    wrong: saying((plan) => ({
      ...plan,
      journal: packagesChanged(plan.journal, ({ owes: _owes, ...entry }) =>
        entry.stage === 'apply' && entry.state === 'complete' ? { ...entry, stage: 'config' } : entry,
      ),
    })),
    says: /complete is said|never complete|differs?/,
  },
  'forgets the interrupt that is owed': {
    wrong: saying((plan) => ({ ...plan, journal: packagesChanged(plan.journal, ({ owes: _owes, ...entry }) => entry) })),
    says: /complete is said|differs?/,
  },
  'takes no for the answer of every package': {
    wrong: seeing((world) => answering(world, false)),
    says: /complete is said|is complete$|is complete\n/,
  },
  'takes yes for it': {
    wrong: seeing((world) => answering(world, true)),
    says: /an interrupt runs that no package requires/,
  },
  'asks again as long as the interrupt has not begun': {
    wrong: saying((plan, world) => ({
      ...plan,
      journal: packagesChanged(plan.journal, (entry) =>
        entry.owes?.when === 'required' && entry.stage === 'config' && world.nowMs % 5 === 0
          ? { ...entry, interruptRequired: { required: true, bootId: '' } }
          : entry,
      ),
    })),
    says: /runs after config|complete is said|differs?/,
  },
  'does not wait for steps before it interrupts, nor for interrupts before it steps': {
    wrong: seeing((world) => ({
      ...world,
      journal: {
        ...world.journal,
        skyhooks: Object.fromEntries(
          Object.entries(world.journal.skyhooks).map(([name, { interrupt: _interrupt, ...record }]) => [name, record]),
        ),
      },
    })),
    says: /while an interrupt is under way|an interrupt runs while|differs?|never complete|does not settle/,
  },
  'gives the slot back in the very decision that completes': {
    wrong: (world, reasons) => {
      const plan = decide(world, reasons)
      const isDone = (name: string): boolean =>
        plan.journal.skyhooks[name]?.published?.status === 'complete' && world.journal.skyhooks[name]?.published?.status !== 'complete'
      const done = world.slots.known ? world.slots.value.filter(({ skyhook }) => isDone(skyhook)) : []
      return {
        ...plan,
        actions: [...done.map((slot): Action => ({ do: 'releaseSlot', key: `slot/${slot.skyhook}`, slot })), ...plan.actions],
      }
    },
    says: /the slot of .* goes before|differs?/,
  },
  'leaves its cordon behind': {
    wrong: saying((plan) => ({
      ...plan,
      actions: plan.actions.map((action) => {
        if (action.do !== 'publish' || action.patch.unschedulable !== false) return action
        const { unschedulable: _unschedulable, ...patch } = action.patch
        return { ...action, patch }
      }),
    })),
    says: /unschedulable should be/,
  },
  'uncordons what an administrator cordoned': {
    wrong: seeing((world) => ({
      ...world,
      node: {
        ...world.node,
        metadata: {
          ...world.node.metadata,
          annotations: Object.fromEntries(
            Object.entries(world.node.metadata.annotations ?? {}).filter(([key]) => key !== 'skyhook.nvidia.com/cordoned-before'),
          ),
        },
      },
    })),
    says: /unschedulable should be|differs?|does not settle/,
  },
  'says complete too early': {
    wrong: saying((plan, world) => ({
      ...plan,
      actions: plan.actions.map((action) => {
        if (action.do !== 'publish' || !('skyhook.nvidia.com/status_s' in action.patch.annotations)) return action
        const view = world.skyhooks.known ? world.skyhooks.value[0] : undefined
        if (!view) return action
        return {
          ...action,
          patch: { ...action.patch, annotations: { ...action.patch.annotations, 'skyhook.nvidia.com/status_s': 'complete' } },
        }
      }),
    })),
    says: /complete is said|before completion|does not settle/,
  },
  'runs what is complete again, now and then': {
    wrong: seeing((world) => ({
      ...world,
      journal: packagesChanged(world.journal, (entry) =>
        entry.finished && !entry.attempt && entry.state === 'complete' && world.nowMs % 7 === 0 ? { ...entry, stage: 'apply' } : entry,
      ),
    })),
    says: /although the package was complete|never complete|differs?/,
  },
  'never stops what is not wanted any more': {
    wrong: saying((plan) => ({
      ...plan,
      journal: {
        ...plan.journal,
        skyhooks: Object.fromEntries(
          Object.entries(plan.journal.skyhooks).map(([name, { stopping: _stopping, ...record }]) => [name, record]),
        ),
      },
    })),
    says: /beside another step|differs?/,
  },
  'gives its plan a life of its own': {
    wrong: saying((plan) => ({
      ...plan,
      journal: {
        ...plan.journal,
        skyhooks: Object.fromEntries(
          Object.entries(plan.journal.skyhooks).map(([name, record]) => [name, { ...record, rev: record.rev + 1 }]),
        ),
      },
    })),
    says: /decided again, the journal differs/,
  },
}
