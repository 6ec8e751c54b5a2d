/** Bugs in what an agent and a census know, write and execute: src/daemon, src/kube, src/census. */
import { edit, fleet, has, inFile, type Mutant, unit } from '../mutant.ts'

const interrupts = inFile('daemon/executors/interrupts.ts', 'daemon/executors/interrupts.test.ts')
const evictions = inFile('daemon/executors/evictions.ts', 'daemon/executors/evictions.test.ts')
const skyhooks = inFile('daemon/state/skyhooks.ts', 'daemon/state/skyhooks.test.ts')
const pods = inFile('daemon/state/pods.ts', 'daemon/state/pods.test.ts')
const statuses = inFile('daemon/state/package-statuses.ts', 'daemon/state/package-statuses.test.ts')
const reporter = inFile('daemon/telemetry/reporter.ts', 'daemon/telemetry/reporter.test.ts')
const loop = inFile('daemon/loop.ts', 'daemon/loop.test.ts')
const output = inFile('daemon/executors/steps/output.ts', 'daemon/executors/steps/output.test.ts')
const reader = inFile('packages/step/output-reader.ts', 'packages/step/output-reader.test.ts')

const specSeen = inFile('census/reconcile/reconcile.ts', 'census/reconcile/reconcile.test.ts')

export const daemonBugs: readonly Mutant[] = [
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
  reader('live output is not masked', 'mask.mask(output.text.slice(0, cut))', 'output.text.slice(0, cut)'),
  reader('half a secret is handed on', 'const start = mask.crossing(text, cut)', 'const start = undefined'),
  reader(
    'a secret that begins before a jump is shown',
    'if (mask.crossing(output.text, at + 1) !== undefined) continue',
    '',
  ),
  output('a new agent prints everything again', 'Object.assign(entry.cursors, parsePrinted(printed))', ''),
  output('output has no bound', 'budget = spent(budget,', 'void spent(budget,'),
  ...(
    [
      ['daemon/failures/book.ts', 'const nowMs = clock.steadyMs()\n      const { reason,'],
      ['daemon/executors/evictions.ts', '=> clock.steadyMs()'],
    ] as const
  ).map(([file, search]) =>
    inFile(file, 'daemon/clock-jumps.test.ts')(
      `${file} waits by the wall clock`,
      search,
      search.replace('steadyMs', 'wallMs'),
    ),
  ),
  {
    name: 'a Node is patched without the version that the patch was computed from',
    edits: [
      edit(
        'kube/node-writer.ts',
        'metadata: { resourceVersion, annotations, labels }',
        'metadata: { annotations, labels }',
      ),
    ],
    caughtBy: [
      fleet('cordon', 'node-written-over', {
        mayShow: has(['cordoned'], ['watches-slow', 'api-reads-stale', 'network-cut', 'watches-cut', 'api-slow']),
      }),
    ],
  },
  {
    name: 'a watch whose version is gone is opened again from that version, without a LIST',
    edits: [
      edit(
        'kube/reflector.ts',
        "if (during === 'watch' && (relistsAfterOverload",
        "if (during === 'list' && (relistsAfterOverload",
      ),
    ],
    caughtBy: [
      fleet('progress', 'expired-watch-repeated', {
        mayShow: has(['api-server-down', 'etcd-restored', 'network-cut']),
      }),
    ],
  },
  {
    name: 'a LIST or watch that fails is repeated at once',
    edits: [
      edit('kube/reflector.ts', '?? backoffMs(++failures, timing.backoff, random.number())', '?? 0 * ++failures'),
    ],
    caughtBy: [
      fleet('request-rate', 'list-repeated-without-a-pause', {
        mayShow: has(['api-errors', 'api-refusals', 'network-cut', 'api-server-down']),
      }),
    ],
  },
  {
    name: 'an action that fails is tried again at once',
    edits: [edit('daemon/failures/book.ts', 'notBeforeMs: nowMs + waitMs', 'notBeforeMs: 0 * (nowMs + waitMs)')],
    caughtBy: [
      fleet('request-rate', 'failed-action-repeated-without-a-pause', {
        mayShow: has(['api-errors', 'api-refusals', 'network-cut', 'api-server-down']),
      }),
    ],
  },
  {
    name: 'a spec in doubt counts as current: after a restore of etcd, another one of its generation is never read',
    edits: [edit('daemon/state/skyhooks.ts', '        !entry.isInDoubt &&\n', '')],
    caughtBy: [fleet('progress', 'doubtful-spec-believed', { mayShow: has(['etcd-restored']) })],
  },
  {
    name: 'an elected agent stays so while its census does not count',
    edits: [edit('daemon/census/supervisor.ts', '() => endTerm(startedAtMs)', '() => undefined')],
    caughtBy: [
      fleet('counted', 'leader-without-a-count', {
        mayShow: has(['census-hung', 'census-lists-silent', 'census-node-deleted']),
      }),
    ],
  },
  {
    name: 'the census keeps a lower count when nodes come back',
    edits: [
      edit(
        'census/ledger/ledger-plan.ts',
        'if (nowMs - pendingRise.sinceMs < riseDelayMs)',
        'if (pendingRise.sinceMs > 0)',
      ),
    ],
    caughtBy: [
      fleet('ledger-fresh', 'rise-never-published', {
        mayShow: has(['node-relabeled', 'node-deleted', 'host-wiped-and-registered']),
      }),
    ],
  },
  {
    name: 'the census writes the list of finalizers without taking its own out',
    edits: [
      edit(
        'census/model/finalizer.ts',
        "return plan === 'add' ? [...others, finalizerName] : others",
        "return plan === 'add' ? [...others, finalizerName] : finalizers",
      ),
    ],
    caughtBy: [fleet('backs-off', 'finalizer-written-back', { mayShow: has(['skyhook-deleted']) })],
  },
  {
    name: 'the census says Ready while one node is not complete',
    edits: [
      edit(
        'census/status/conditions.ts',
        "if (complete === nodes.length)\n    return { status: 'True'",
        "if (complete >= nodes.length - 1)\n    return { status: 'True'",
      ),
    ],
    caughtBy: [fleet('ready-true', 'ready-before-the-last-node')],
  },
  {
    name: 'the census waits for no node that says nothing of the spec',
    edits: [
      edit(
        'census/reconcile/reconcile.ts',
        'const isSeen = haveAllCompleted(counts.nodes, { uid, generation: state.workGeneration })',
        'const isSeen = uid !== undefined || haveAllCompleted([], { uid, generation: 0 })',
      ),
    ],
    caughtBy: [
      unit('census/reconcile/ready-at-once.test.ts'),
      fleet('ready-seen', 'ready-for-an-unread-spec', { mayShow: has(['watches-slow'], ['package-config']) }),
    ],
  },
  specSeen(
    'an earlier spec counts as this one',
    'completedBy.generation >= spec.generation',
    'completedBy !== undefined',
  ),
  specSeen(
    'an earlier Skyhook of the name counts',
    'completedBy?.uid === spec.uid && completedBy.',
    'completedBy !== undefined && completedBy.',
  ),
]
