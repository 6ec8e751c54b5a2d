/** Bugs in the protocol of slots: src/lease and src/daemon/slots. */
import type { Plan } from '../../kit/fleet/plan.ts'
import { all, edit, fleet, has, hasControlPlanes, inFile, type Mutant, smallFleet, unit } from '../mutant.ts'

const hasPercentage = ({ skyhooks }: Plan): boolean =>
  skyhooks.some(({ spec }) => spec.interruptionBudget?.percent !== undefined)

const confirmationTest = 'daemon/slots/slot-manager-confirmation.test.ts'
const controlPlaneTest = 'daemon/slots/slot-manager-control-plane.test.ts'
const heldSlotsTest = 'daemon/slots/slot-manager-held-slots.test.ts'
const requestsTest = 'daemon/slots/slot-manager-requests.test.ts'
const tooMany = /\d nodes are out, the budget was \d/

/** Of a node that waits for a slot. */
const lineTests = [
  'daemon/slots/slot-line-batches.test.ts',
  'daemon/slots/slot-line-budgets.test.ts',
  'daemon/slots/slot-line-far.test.ts',
  'daemon/slots/slot-line-first-request.test.ts',
  'daemon/slots/slot-line-near.test.ts',
  'daemon/slots/slots-beside-line.test.ts',
]

const book = inFile('daemon/slots/slot-book.ts', 'daemon/slots/slot-book.test.ts')
const denials = inFile('daemon/slots/denials.ts', 'daemon/slots/denials.test.ts')
const confirmation = inFile('daemon/slots/confirmation.ts', confirmationTest)
const ownSlots = inFile('daemon/slots/own-slots.ts', heldSlotsTest)
const requests = inFile('daemon/slots/slot-requests.ts', requestsTest)
const held = inFile('daemon/slots/held-slots.ts', heldSlotsTest, controlPlaneTest)
const manager = inFile('daemon/slots/slot-manager.ts', confirmationTest, controlPlaneTest, requestsTest)
const wait = inFile('daemon/slots/slot-wait.ts', ...lineTests)
const watch = inFile('daemon/slots/lease-watch.ts', ...lineTests)
const line = inFile('daemon/slots/slot-line.ts', ...lineTests)

export const slotBugs: readonly Mutant[] = [
  book('a slot that the watch shows is trusted', "{ slot, ownership: 'seen'", "{ slot, ownership: 'owned'"),
  book('a renewal confirms', "? 'releasing' : 'owned'", "? 'releasing' : 'confirmed'"),
  book('an old event brings a slot back', '|| book.ended.has(slot.uid)', ''),
  book('a LIST puts nothing in doubt', 'for (const uid of missing) next = doubted(next, uid)', ''),
  book('a restored slot is not seen', 'let next: SlotBook = { ...book, ended: new Set() }', 'let next = book'),
  denials('a grant ends no wait', 'others.delete(skyhook)', ''),
  denials('each denial starts the wait over', 'denials.get(skyhook)?.sinceMs ?? nowMs', 'nowMs'),
  denials('a wait is measured from now', 'nowMs - denial.sinceMs', '0'),
  confirmation('a paused Skyhook is confirmed', "if (now.metadata.annotations?.[pauseKey] === 'true')", 'if (false)'),
  confirmation('another generation is confirmed', 'if ((now.metadata.generation ?? 0) !== generation)', 'if (false)'),
  confirmation(
    'the LIST of another generation counts',
    '|| admittedUnder?.generation !== (metadata.generation ?? 0)',
    '',
  ),
  confirmation(
    'the count of a percentage is not looked up again',
    'percent === undefined || count !== undefined',
    'true',
  ),
  ownSlots('slots are known before they are listed', 'if (!isSynced)', 'if (false)'),
  ownSlots(
    'a slot of an earlier registration is ours',
    'isFormer: slot.nodeUid !==',
    'isFormer: false && slot.nodeUid !==',
  ),
  requests('an unanswered creation is forgotten', 'unansweredIndex: unanswered.indexIn(scope),', ''),
  held(
    'a release without an answer forgets the slot',
    "if (result.outcome === 'unknown') {\n        ownSlots.record",
    'if (false) {\n        ownSlots.record',
  ),
  manager('a yielded slot stays at the API server', 'await held.release(entry)\n  }', 'held.end(entry)\n  }'),
  manager('slots are given back at the same pace', 'const count = (yields.get(uid) ?? 0) + 1', 'const count = 1'),
  held('a report believes a lost slot', '|| !(await renewEntry(entry, slot.skyhook, phase))', ''),
  held(
    'a report looks at one slot',
    'const isNeeded = node !== undefined && isControlPlaneNode(node)',
    'const isNeeded = false',
  ),
  manager('rejected requests are repeated at the same pace', '(rejections.get(uid) ?? 0) + 1', '1'),
  manager("the control plane's slot goes unasked", "slot.scope === 'control-plane' ? require", 'false ? require'),
  // no run of a fleet shows it since nodes look who comes first: the next node starts some ms later
  inFile('stages/decide.ts', 'stages/behavior/slots.test.ts')(
    'a slot goes back beside a cordon that may be there',
    'snapshot.isNodeInDoubt === true',
    'false',
  ),
  held(
    'work goes on under a slot that is about to be given back',
    'ownSlots.record((book) => slotBook.releasing(book, slot.uid))',
    '',
  ),
  wait(
    'a node asks before it may',
    "state.at === 'asked' || kind !== 'slot'",
    "state.at !== 'turn' || kind !== 'slot'",
  ),
  wait('a wait that is over is watched on', '      closing.abort()\n', ''),
  wait('a raised budget is not seen', '      view = latest\n', ''),
  wait('a ledger that stands still is believed', '> staleMs', '> Infinity'),
  inFile('lease/outlook.ts', ...lineTests)(
    'nobody comes forward while the ledger stands still',
    'known.unchangedMs >= staleMs',
    'false',
  ),
  wait('a node that comes near does not make ready', 'if (wasFar && !isFar()) soon(options.onNear)', ''),
  wait('a new reason is not shown', '|| (isReason && !isReasonNew)', ''),
  wait(
    'a node that joins waits for slots of others',
    "kind === 'bootstrap' ? [budget.bootstrapLimitOf",
    'kind !== kind ? [budget.bootstrapLimitOf',
  ),
  wait('a count that is missing is awaited for ever', 'isCountAwaited = false // it', 'void 0 // it'),
  wait('a slot that is seen free is not preferred', 'return free?.[', 'return free && []['),
  wait('some slots are watched where they do not tell', 'areSomeTooFew = slots', 'areSomeTooFew = false && slots'),
  watch(
    'a slot that is given back stays held',
    'if (after === undefined) slots.delete(key)',
    'if (after === undefined) void key',
  ),
  line('a near node asks before it has its layers', 'isPrepared || !isOfMany', 'true || !isOfMany'),
  line('layers are fetched by the whole fleet', '|| !isCrowded(fleet.agents(), 0)', '|| true'),
  {
    name: 'slots above an index do not count: after a cut of the budget too many are admitted',
    edits: [edit('lease/rule.ts', 'if (index + above >= end) continue', 'if (index >= end) continue')],
    caughtBy: [
      smallFleet('two nodes while the budget goes from 2 to 1 to 0 to 1', tooMany),
      fleet('budget', 'admission-by-index-alone', { mayShow: has(['budget']) }),
    ],
  },
  {
    name: 'the holders are counted, instead of those above the index',
    edits: [
      edit('lease/rule.ts', 'for (let index = 0; index < end; index++)', 'for (let index = 0; index < 3; index++)'),
      edit('lease/rule.ts', 'if (index + above >= end) continue', 'if (heldIndices.length >= end) continue'),
    ],
    caughtBy: [smallFleet('two nodes while the budget goes from 2 to 1 to 0 to 1', tooMany)],
  },
  {
    name: 'a node whose slot was lost and created again takes no capacity',
    edits: [
      edit(
        'lease/slot.ts',
        'if (holdersAbove.has(slot.holder)) return []',
        "if (slot.kind === 'recovery' || holdersAbove.has(slot.holder)) return []",
      ),
    ],
    caughtBy: [
      smallFleet('two nodes with a budget of 1 and any fault', tooMany),
      fleet('budget', 'recovery-slots-not-counted', {
        mayShow: has(['lease-deleted', 'etcd-restored', 'node-deleted', 'host-wiped-and-registered']),
      }),
    ],
  },
  {
    name: 'slots of an earlier Skyhook of the same name take no capacity from the present one',
    edits: [
      edit('lease/slot.ts', "return (slot.kind === 'bootstrap') === (scope.kind === 'bootstrap')", 'return false'),
    ],
    caughtBy: [fleet('budget', 'former-skyhook-not-counted', { mayShow: has(['skyhook-deleted']) })],
  },
  {
    name: 'nobody collects the slot of a Node that is gone',
    edits: [
      edit(
        'lease/slot.ts',
        "      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid }],\n",
        '      ownerReferences: [],\n',
      ),
    ],
    caughtBy: [fleet('slots-owned', 'slot-without-owner', { mayShow: has(['node-renamed']) })],
  },
  {
    name: 'a slot that was admitted under an earlier spec is confirmed without a look at the slots of others',
    edits: [
      edit(
        'daemon/slots/confirmation.ts',
        "if (ownership === 'seen' || admittedUnder?.generation !== (metadata.generation ?? 0)) return false",
        "if (ownership === 'seen') return false",
      ),
    ],
    caughtBy: [
      smallFleet('two nodes while the budget goes from 2 to 1 to 0 to 1', tooMany),
      fleet('budget', 'admission-never-repeated', { mayShow: has(['budget']) }),
    ],
  },
  {
    name: 'a percentage of the nodes is rounded up',
    edits: [edit('lease/rule.ts', '(hundredths - (hundredths % 100)) / 100', 'Math.ceil(hundredths / 100)')],
    caughtBy: [fleet('budget', 'percentage-rounded-up', { mayShow: hasPercentage })],
  },
  {
    name: 'a release without preconditions: repeated, it deletes the slot of the next holder',
    edits: [
      edit(
        'lease/slots.ts',
        'const preconditions = { uid: current.uid, resourceVersion: current.resourceVersion }',
        'const preconditions = {}',
      ),
    ],
    caughtBy: [
      fleet('budget', 'any-slot-of-the-name-deleted', {
        mayShow: has(['api-commits-late', 'api-answers-lost', 'api-fails-after-commit', 'network-cut']),
      }),
    ],
  },
  {
    name: 'nobody gives the slot of the control plane back',
    edits: [
      edit(
        'stages/skyhook/slot.ts',
        "...(isControlPlaneUnused(snapshot, journal, needsControlPlane) ? firstOf(current, 'control-plane') : []),",
        '',
      ),
    ],
    caughtBy: [fleet('slots-owned', 'control-plane-slot-kept', { mayShow: hasControlPlanes(1) })],
  },
  {
    name: 'a renewal whose answer was lost is repeated over the version before it, for ever',
    edits: [
      edit(
        'lease/slots.ts',
        '    current = observed.slot // another client wrote into it, or the answer to our PUT was lost\n',
        '',
      ),
    ],
    caughtBy: [
      fleet('backs-off', 'slot-not-read-after-a-conflict', {
        mayShow: has(['api-answers-lost', 'api-fails-after-commit']),
      }),
    ],
  },
  {
    name: 'a slot counts as owned while its DELETE is under way, and goes back while the pods in the way are unknown',
    edits: [
      edit('stages/skyhook/slot.ts', "ownership === 'owned' || ownership === 'confirmed'", "ownership !== 'seen'"),
      edit('stages/skyhook/control-plane.ts', "drain.reason === undefined ? 'while-held' : 'nothing'", "'nothing'"),
    ],
    // fleets hardly show it: nodes of the control plane watch their pods all the time
    caughtBy: [unit('stages/behavior/slots.test.ts')],
  },
  {
    name: 'the static pods of a control-plane node are recorded once it is cordoned',
    edits: [
      edit(
        'stages/skyhook/control-plane.ts',
        'const isFollowed = isControlPlaneNode(node) && Object.keys(skyhooks).length > 0',
        'const isFollowed = isControlPlaneNode(node) && (isOut(snapshot) || hasInterrupt(skyhooks))',
      ),
      edit('stages/skyhook/control-plane.ts', ' && areStaticPodsRecorded(snapshot)', ''),
    ],
    caughtBy: [
      fleet('control-plane', 'static-pods-recorded-late', { mayShow: all(hasControlPlanes(2), has(['host-crashed'])) }),
      unit('stages/behavior/slots.test.ts'),
    ],
  },
  {
    name: 'the wait of a joining node for the count of its compartment is that of the other nodes',
    edits: [
      edit(
        'daemon/slots/slot-manager.ts',
        'line.awaitCompartment(view, ledger, kind)',
        "line.awaitCompartment(view, ledger, 'slot')",
      ),
    ],
    caughtBy: [fleet('request-rate', 'joining-asks-in-a-loop', { mayShow: has(['policy-for-a-while']) })],
  },
  {
    name: 'the agent knows of its own cordon only once the watch shows it, and gives the slot back meanwhile',
    edits: [edit('daemon/executors/publish.ts', '    source.written(patchedNode(node, patch, result.metadata))\n', '')],
    caughtBy: [fleet('slots-kept', 'own-write-not-known', { mayShow: has(['watches-slow']) })],
  },
]
