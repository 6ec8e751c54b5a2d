/** Defects that the product had: each is put back by the smallest change of the present sources. */
import type { Plan } from '../../kit/fleet/plan.ts'
import { all, change, has, hasControlPlanes, type FleetMutant } from './mutant.ts'

const newsLate = ['watches-slow', 'api-reads-stale'] as const
const specEdits = [
  'package-version',
  'package-config',
  'package-added',
  'budget',
  'priority',
  'interrupt-added',
] as const

const hasRequiredBesideOthers = ({ nodes, skyhooks }: Plan): boolean =>
  nodes.length > 2 && skyhooks.length > 1 && skyhooks.some(({ spec }) => spec.runtimeRequired === true)

export const knownDefects: readonly FleetMutant[] = [
  {
    name: 'started-work-confirmed-again',
    rule: 'slots-kept',
    bug: 'an agent that starts has the slot of started work confirmed, under the budget and the spec of that moment',
    changes: [
      change(
        'stages/skyhook/slot.ts',
        'if (slot && !isInServiceUnder(snapshot, slot)) renewWhenDue(builder, key, slot, phase)',
        "if (slot?.ownership === 'seen') builder.actions.push({ do: 'confirmSlot', key, slot, view })\n" +
          '  else if (slot && !isInServiceUnder(snapshot, slot)) renewWhenDue(builder, key, slot, phase)',
      ),
    ],
    mayShow: has(['paused', 'disabled', 'budget']),
  },
  {
    name: 'confirmation-without-an-answer',
    rule: 'request-rate',
    bug: 'a confirmation that finds another spec than the watch shows changes nothing, and is asked for again at once',
    changes: [
      change(
        'daemon/slots/slot-manager.ts',
        "return await giveBack(entry, view, { message: change ?? 'it is gone', waitsFor: 'spec' })",
        'return',
      ),
      change(
        'daemon/failures/repetitions.ts',
        'return entry.atMs + backoffMs(entry.count, repetitionBackoff)',
        'return 0',
      ),
    ],
    mayShow: has(newsLate, specEdits),
  },
  {
    name: 'control-plane-not-asked-by-started-work',
    rule: 'control-plane',
    bug: 'only work that has not started asks for the slot of the control plane before the cordon',
    changes: [change('stages/skyhook/control-plane.ts', 'return slot !== undefined && isOwned(slot)', 'return true')],
    mayShow: all(hasControlPlanes(2), has(['interrupt-added', 'package-added'])),
  },
  {
    name: 'own-slots-read-once',
    rule: 'slots-true',
    bug: 'an agent looks for its slots when it starts and never again',
    changes: [
      change(
        'daemon/slots/own-slots.ts',
        'else if (slot) book = slotBook.seen(',
        'else if (slot && !isSynced) book = slotBook.seen(',
      ),
      change(
        'daemon/slots/own-slots.ts',
        '      const before = book\n',
        '      if (isSynced) return\n      const before = book\n',
      ),
    ],
    mayShow: has(['etcd-restored', 'api-commits-late']),
  },
  {
    name: 'unread-skyhook-at-the-end',
    rule: 'ends',
    bug: 'an agent that is told to end while a Skyhook is unread starts the next read at once, without end',
    changes: [
      change('daemon/state/skyhooks.ts', '    if (signal.aborted) return\n', ''),
      change('daemon/state/skyhooks.ts', '() => undefined, // aborted', 'refresh,'),
    ],
    mayShow: has(
      ['agent-terminated', 'agent-older', 'agent-newer'],
      ['api-slow', 'api-silent', 'api-errors', 'api-overloaded', 'network-cut', 'api-server-down'],
    ),
  },
  {
    name: 'waits-by-the-wall-clock',
    rule: 'progress',
    bug: 'what waits for a retry waits for the wall clock: set back, it has to catch up first',
    changes: [
      change(
        'daemon/agent.ts',
        '  const { clock, log } = platform\n',
        '  const { log } = platform\n  const clock = { ...platform.clock, steadyMs: () => platform.clock.wallMs() }\n' +
          '  platform = { ...platform, clock }\n',
      ),
    ],
    mayShow: ({ actions }) =>
      actions.some(({ kind, detail }) => kind === 'clock-jumped' && Number(detail?.['byMs']) < -60_000),
  },
  {
    name: 'percentage-of-former-nodes',
    rule: 'budget',
    bug: 'a percentage is of the nodes that were counted last, however many of them are left',
    changes: [
      change('lease/budget/budget.ts', 'matched: Math.min(counted.matched, nodes)', 'matched: counted.matched'),
    ],
    // where one is left, it may always start
    mayShow: ({ actions }) =>
      actions.some(({ kind, detail }) => kind === 'nodes-removed' && Number(detail?.['keeps']) > 1),
  },
  {
    name: 'taint-lifted-beside-joining-work',
    rule: 'budget',
    bug: 'the runtime-required taint goes while a later Skyhook works under a slot for joining nodes',
    changes: [
      change(
        'stages/drain/node-spec-builder.ts',
        'mayTaint && !isJoiningWorkUnderWay(this.#snapshot, after)',
        'mayTaint',
      ),
    ],
    mayShow: hasRequiredBesideOthers,
  },
]
