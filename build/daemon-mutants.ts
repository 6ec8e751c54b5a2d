/**
 * Deliberate bugs in `src/daemon` and in the batches of policies: the unit tests named beside each must catch it, which
 * build/mutants.ts finds out.
 */
import { batchMutants } from './batch-mutants.ts'
import type { Mutant } from './mutant-tree.ts'

const inFile =
  (file: string, ...tests: readonly string[]) =>
  (name: string, search: string, replace: string): Mutant => ({
    name,
    file: `daemon/${file}`,
    search,
    replace,
    tests: tests.map((test) => `daemon/${test}`),
  })

const confirmationTest = 'slots/slot-manager-confirmation.test.ts'
const controlPlaneTest = 'slots/slot-manager-control-plane.test.ts'
const heldSlotsTest = 'slots/slot-manager-held-slots.test.ts'
const requestsTest = 'slots/slot-manager-requests.test.ts'
/** Of a node that waits for a slot. */
const lineTests = [
  'slots/slot-line-batches.test.ts',
  'slots/slot-line-budgets.test.ts',
  'slots/slot-line-far.test.ts',
  'slots/slot-line-first-request.test.ts',
  'slots/slot-line-near.test.ts',
  'slots/slots-beside-line.test.ts',
]

const book = inFile('slots/slot-book.ts', 'slots/slot-book.test.ts')
const denials = inFile('slots/denials.ts', 'slots/denials.test.ts')
const manager = inFile('slots/slot-manager.ts', confirmationTest, controlPlaneTest, requestsTest)
const held = inFile('slots/held-slots.ts', heldSlotsTest, controlPlaneTest)
const ownSlots = inFile('slots/own-slots.ts', heldSlotsTest)
const confirmation = inFile('slots/confirmation.ts', confirmationTest)
const requests = inFile('slots/slot-requests.ts', requestsTest)
const wait = inFile('slots/slot-wait.ts', ...lineTests)
const watch = inFile('slots/lease-watch.ts', ...lineTests)
const finished = inFile('slots/finished-batches.ts', 'slots/batches.test.ts')
const policyRead = inFile('slots/confirmation.ts', 'slots/batches.test.ts')
const line = inFile('slots/slot-line.ts', ...lineTests)
const interrupts = inFile('executors/interrupts.ts', 'executors/interrupts.test.ts')
const evictions = inFile('executors/evictions.ts', 'executors/evictions.test.ts')
const skyhooks = inFile('state/skyhooks.ts', 'state/skyhooks.test.ts')
const pods = inFile('state/pods.ts', 'state/pods.test.ts')
const statuses = inFile('state/package-statuses.ts', 'state/package-statuses.test.ts')
const reporter = inFile('telemetry/reporter.ts', 'telemetry/reporter.test.ts')
const loop = inFile('loop.ts', 'loop.test.ts')
const output = inFile('executors/steps/output.ts', 'executors/steps/output.test.ts')
const inReader = (name: string, search: string, replace: string): Mutant => ({
  name,
  file: 'packages/step/output-reader.ts',
  search,
  replace,
  tests: ['packages/step/output-reader.test.ts'],
})

export const mutants: readonly Mutant[] = [
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
  policyRead('the ledger of a policy is not looked up again', 'if (spec?.deploymentPolicy) return false', ''),
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
  {
    // no run of a fleet shows it since nodes look who comes first: the next node starts some ms later
    name: 'a slot goes back beside a cordon that may be there',
    file: 'stages/decide.ts',
    search: 'snapshot.isNodeInDoubt === true',
    replace: 'false',
    tests: ['stages/behavior/slots.test.ts'],
  },
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
  {
    name: 'nobody comes forward while the ledger stands still',
    file: 'lease/outlook.ts',
    search: 'known.unchangedMs >= staleMs',
    replace: 'false',
    tests: lineTests.map((test) => `daemon/${test}`),
  },
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
  finished('a batch is over while its epoch is open', 'batch.epoch > epoch', 'batch.epoch >= epoch'),
  policyRead(
    'a policy of another generation is believed',
    '(now.metadata.generation ?? 0) === policy.generation',
    'true',
  ),
  interrupts('a canceled interrupt starts', 'if (run.abandoned)', 'if (false)'),
  interrupts('a pod on the node stops nothing', 'if (pod) return', 'if (false) return'),
  interrupts('a lost slot stops nothing', 'return isSlotHeld ? undefined', 'return true ? undefined'),
  interrupts('a reboot is requested twice', 'if (progress.asked)', 'if (false)'),
  interrupts(
    'a reboot is requested before it is written down',
    'await writeProgress(run, { ...progress, asked: true })',
    '',
  ),
  interrupts(
    'another agent is believed',
    "outcome.outcome === 'not-requested' && !isVerified",
    "false && outcome.outcome === 'not-requested'",
  ),
  interrupts('an outcome is forgotten', "if (latest && latest.state !== 'running') return", ''),
  interrupts('all services fail with one', 'failedServices.push(service)', 'failedServices.push(...services)'),
  interrupts('a refusal ends no interrupt', 'if (outcome) observations.set(run.id, outcome)', ''),
  interrupts('a silence ends the interrupt', 'if (passingReasons.has(reason)) return undefined', ''),
  evictions('a forced eviction needs no permission', 'if (isForced && mayDelete)', 'if (isForced)'),
  evictions('every eviction deletes', 'if (isForced && mayDelete)', 'if (mayDelete)'),
  evictions('each refusal starts over', "previous?.state === 'blocked' ? previous.sinceMs : nowMs", 'nowMs'),
  evictions(
    'what came back counts as there before',
    'if (evictedOwners.get(key)?.uids.has(pod.metadata.uid)) return',
    '',
  ),
  evictions('another pod of the name is deleted', ', preconditions: { uid } }', ' }'),
  skyhooks(
    'a half-read list counts as known',
    'if (!object) return unknown(',
    'if (!object) continue\n      if (false) return unknown(',
  ),
  skyhooks('an old spec counts as current', 'stale: !reads.isCurrent(metadata)', 'stale: false'),
  skyhooks(
    'a read may be older than the watch',
    'const query = { resourceVersion: metadata.resourceVersion }',
    'const query = {}',
  ),
  skyhooks(
    'an answer that is not current is asked for again at once',
    'if (failures > 0) await sleep(',
    'if (false) await sleep(',
  ),
  skyhooks('a change wakes nobody', '    options.wake()', ''),
  pods('evictions outlive their pods', '    onUids(new Set(pods.map', '    void (new Set(pods.map'),
  pods(
    'the old pods count after a change of watch',
    "      current = unknown('the pods of this node are not watched')\n",
    '',
  ),
  pods('a look counts while nobody watches', "if (currentWatch !== 'no' && current.known) setPods", 'setPods'),
  pods('a broken watch shows the present', 'else if (state.lastError) current =', 'else if (false) current ='),
  pods('a watch that was broken continues with what it showed', '      relistsAfterOverload: true,', '     '),
  statuses('the statuses of deleted Skyhooks are read', 'if (orphaned) continue', ''),
  statuses('each look wakes the loop', 'if (isSame) return', ''),
  reporter('a reason that passes by is reported', 'clock.steadyMs() - sinceMs < reasonReportDelayMs', 'false'),
  reporter('a reason is reported with each decision', 'reportedReasons.set(skyhook, text)', ''),
  reporter('a reason that came back is not reported', 'if (!reasons.has(name)) reportedReasons.delete(name)', ''),
  reporter('the youngest reason counts', 'Math.max(ages.get(reason) ?? 0,', 'Math.min(ages.get(reason) ?? Infinity,'),
  loop('an action that is under way starts again', 'if (running.has(action.key)) return', ''),
  loop(
    'an unwritten journal counts',
    '&& !(await journal.write(plan.journal))',
    '&& !(await journal.write(plan.journal)) && false',
  ),
  loop('a failed record is not repeated', 'if (isPlannedOnce(action.do))', 'if (false)'),
  inReader('live output is not masked', 'mask.mask(output.text.slice(0, cut))', 'output.text.slice(0, cut)'),
  inReader('half a secret is handed on', 'const start = mask.crossing(text, cut)', 'const start = undefined'),
  inReader(
    'a secret that begins before a jump is shown',
    'if (mask.crossing(output.text, at + 1) !== undefined) continue',
    '',
  ),
  output('a new agent prints everything again', 'Object.assign(entry.cursors, parsePrinted(printed))', ''),
  output('output has no bound', 'budget = spent(budget,', 'void spent(budget,'),
  ...['failures/book.ts', 'executors/evictions.ts'].map((file) =>
    inFile(file, 'clock-jumps.test.ts')(`${file} waits by the wall clock`, 'clock.steadyMs()', 'clock.wallMs()'),
  ),
  ...batchMutants,
]

/** Names of different files may be the same. */
export const mutantId = ({ file, name }: Mutant): string => `${file}: ${name}`

/** Every so many-th one, from the first on and from `shift` on. */
export const everyNth = <T>(list: readonly T[], step: number, shift: number): T[] =>
  list.filter((_, index) => index % step === 0 || index % step === shift % step)
