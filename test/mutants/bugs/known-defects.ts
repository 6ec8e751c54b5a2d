/** Defects that the product had: each is put back by the smallest change of the present sources. */
import type { Plan } from '../../kit/fleet/plan.ts'
import { all, edit, fleet, has, hasControlPlanes, type Mutant, smallFleet } from '../mutant.ts'

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

export const knownDefects: readonly Mutant[] = [
  {
    name: 'an agent that starts has the slot of started work confirmed, under the budget and the spec of that moment',
    edits: [
      edit(
        'stages/skyhook/slot.ts',
        'if (slot && !isInServiceUnder(snapshot, slot)) renewWhenDue(builder, key, slot, phase)',
        "if (slot?.ownership === 'seen') builder.actions.push({ do: 'confirmSlot', key, slot, view })\n" +
          '  else if (slot && !isInServiceUnder(snapshot, slot)) renewWhenDue(builder, key, slot, phase)',
      ),
    ],
    caughtBy: [
      smallFleet(
        'two nodes while the budget falls to 0 and rises again, and any fault',
        /released the slot \(skyhook\) before the uncordon/,
      ),
      fleet('slots-kept', 'started-work-confirmed-again', { mayShow: has(['paused', 'disabled', 'budget']) }),
    ],
  },
  {
    name: 'a confirmation that finds another spec than the watch shows changes nothing, and is asked for again at once',
    edits: [
      edit(
        'daemon/slots/slot-manager.ts',
        "return await giveBack(entry, view, { message: change ?? 'the slot is gone', waitsFor: 'spec' })",
        'return',
      ),
      edit('daemon/failures/book.ts', 'return entry.atMs + backoffMs(entry.count, repetitionBackoff)', 'return 0'),
    ],
    caughtBy: [fleet('request-rate', 'confirmation-without-an-answer', { mayShow: has(newsLate, specEdits) })],
  },
  {
    name: 'only work that has not started asks for the slot of the control plane before the cordon',
    edits: [edit('stages/skyhook/control-plane.ts', 'return slot !== undefined && isOwned(slot)', 'return true')],
    caughtBy: [
      smallFleet(
        'two nodes of the control plane that interrupt late',
        /two nodes of the control plane are out of service/,
      ),
      fleet('control-plane', 'control-plane-not-asked-by-started-work', {
        mayShow: all(hasControlPlanes(2), has(['interrupt-added', 'package-added'])),
      }),
    ],
  },
  {
    name: 'an agent looks for its slots when it starts and never again',
    edits: [
      edit(
        'daemon/slots/own-slots.ts',
        'else if (slot) book = slotBook.seen(',
        'else if (slot && !isSynced) book = slotBook.seen(',
      ),
      edit(
        'daemon/slots/own-slots.ts',
        '      const before = book\n',
        '      if (isSynced) return\n      const before = book\n',
      ),
    ],
    caughtBy: [fleet('slots-true', 'own-slots-read-once', { mayShow: has(['etcd-restored', 'api-commits-late']) })],
  },
  {
    name: 'an agent that is told to end while a Skyhook is unread starts the next read at once, without end',
    edits: [
      edit('daemon/state/skyhooks.ts', '    if (signal.aborted) return\n', ''),
      edit('daemon/state/skyhooks.ts', '() => undefined, // aborted', 'refresh,'),
    ],
    caughtBy: [
      fleet('ends', 'unread-skyhook-at-the-end', {
        mayShow: has(
          ['agent-terminated', 'agent-older', 'agent-newer'],
          ['api-slow', 'api-silent', 'api-errors', 'api-overloaded', 'network-cut', 'api-server-down'],
        ),
      }),
    ],
  },
  {
    name: 'what waits for a retry waits for the wall clock: set back, it has to catch up first',
    edits: [
      edit(
        'daemon/agent.ts',
        '  const { clock, log } = platform\n',
        '  platform = { ...platform, clock: { ...platform.clock, steadyMs: platform.clock.wallMs } }\n' +
          '  const { clock, log } = platform\n',
      ),
    ],
    caughtBy: [
      fleet('progress', 'waits-by-the-wall-clock', {
        mayShow: ({ actions }) =>
          actions.some(({ kind, detail }) => kind === 'clock-jumped' && Number(detail?.['byMs']) < -60_000),
      }),
    ],
  },
  {
    name: 'a percentage is of the nodes that were counted last, however many of them are left',
    edits: [edit('lease/budget/budget.ts', 'matched: Math.min(counted.matched, nodes)', 'matched: counted.matched')],
    caughtBy: [
      fleet('budget', 'percentage-of-former-nodes', {
        // where one is left, it may always start
        mayShow: ({ actions }) =>
          actions.some(({ kind, detail }) => kind === 'nodes-removed' && Number(detail?.['keeps']) > 1),
      }),
    ],
  },
  {
    name: 'the runtime-required taint goes while a later Skyhook works under a slot for joining nodes',
    edits: [
      edit(
        'stages/drain/node-spec-builder.ts',
        'mayTaint && !isJoiningWorkUnderWay(this.#snapshot, after)',
        'mayTaint',
      ),
    ],
    caughtBy: [fleet('budget', 'taint-lifted-beside-joining-work', { mayShow: hasRequiredBesideOthers })],
  },
]
