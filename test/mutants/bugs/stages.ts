/** Bugs in what a node decides: src/stages, and how its agent carries it out. */
import { edit, fleet, forgetfulLives, has, type Mutant, randomLives, smallFleet, unit } from '../mutant.ts'

const fallingBudget = 'two nodes while the budget goes from 2 to 1 to 0 to 1'
const twoWithFault = 'two nodes with a budget of 1 and any fault'
const tooMany = /\d nodes are out, the budget was \d/
const unconfirmed = /work begins under a slot that was not confirmed for its spec/
const releasedEarly = /released the slot \(skyhook\) before the uncordon/

export const stageBugs: readonly Mutant[] = [
  {
    name: 'work starts under a slot that was granted and not confirmed',
    edits: [
      edit(
        'stages/skyhook/slot.ts',
        '(hasStarted ? isOwned(slot) : mayStartUnder(slot, view, snapshot.nowMs))',
        'isOwned(slot)',
      ),
    ],
    caughtBy: [
      randomLives(/without a confirmed slot/),
      smallFleet(fallingBudget, unconfirmed),
      fleet('budget', 'work-starts-unconfirmed'),
    ],
  },
  {
    name: 'a soak is over as soon as it starts',
    edits: [edit('stages/skyhook/soak.ts', 'if (endMs <= nowMs) {', 'if (sinceMs <= nowMs) {')],
    caughtBy: [unit('stages/behavior/soak.test.ts'), fleet('soak', 'soak-skipped')],
  },
  {
    name: 'work that has lost its slot is complete without one',
    edits: [edit('stages/skyhook/soak.ts', 'if (slot !== undefined || builder', 'if (slot === undefined || builder')],
    caughtBy: [unit('stages/skyhook/plan-skyhook.test.ts'), fleet('soak', 'complete-without-a-slot')],
  },
  {
    name: 'a complete node gives its slot back while it is still cordoned',
    edits: [
      edit(
        'stages/skyhook/plan-skyhook.ts',
        'if (slot && isInService) releaseSlot(builder, slot)',
        'if (slot) releaseSlot(builder, slot)',
      ),
      edit('stages/skyhook/slot.ts', '  if (hasCordon(builder.snapshot, builder.view.metadata.name)) return\n', ''),
    ],
    caughtBy: [
      randomLives(/gives back .* while its Node carries the cordon mark|differs?/),
      smallFleet(fallingBudget, releasedEarly),
      fleet('slots-kept', 'released-before-uncordoned'),
    ],
  },
  {
    name: 'a node whose package fails gives its slot back in the middle of the change',
    edits: [edit('stages/skyhook/plan-working.ts', '!isRunning && !isHalfChanged(builder)', '!isRunning')],
    caughtBy: [fleet('slots-kept', 'half-changed-node-yields', { mayShow: has(['steps-fail']) })],
  },
  {
    name: 'a node that leaves the selector gives its slot back while a step runs',
    edits: [
      edit(
        'stages/skyhook/departure.ts',
        '    if (slot) releaseSlot(builder, slot)\n  }\n  return departing(',
        '  }\n  if (slot) releaseSlot(builder, slot)\n  return departing(',
      ),
    ],
    caughtBy: [
      fleet('slots-kept', 'unselected-node-releases-at-once', { mayShow: has(['selector', 'node-relabeled']) }),
    ],
  },
  {
    name: 'a node that left the selector half changed continues without asking when it is selected again',
    edits: [edit('stages/skyhook/departure.ts', 'builder.record = { ...record, lifecycle: undefined }', 'void record')],
    caughtBy: [
      randomLives(/taken without asking, after the node gave one back/),
      smallFleet('two nodes that leave the selector and come back', tooMany),
      fleet('budget', 'unselected-node-continues-unasked', { mayShow: has(['selector', 'node-relabeled']) }),
    ],
  },
  {
    name: 'who wanted the node cordoned before is forgotten when the agent uncordons it',
    edits: [edit('stages/drain/node-spec.ts', 'const isKept = keep || before === true', 'const isKept = keep')],
    caughtBy: [
      randomLives(/takes off the cordon that an administrator set|unschedulable should be|differs?|does not settle/),
      smallFleet(twoWithFault, /lost the administrator's cordon/),
      fleet('cordon', 'cordon-of-an-administrator-taken-off', { mayShow: has(['cordoned']) }),
    ],
  },
  {
    name: 'a node that a person uncordoned in the middle of the work is not cordoned again',
    edits: [
      edit(
        'stages/drain/node-spec.ts',
        'if (unschedulable && isMarked) return undefined',
        'if (isMarked) return undefined',
      ),
    ],
    caughtBy: [fleet('progress', 'cordon-not-renewed', { mayShow: has(['uncordoned', 'cordoned']) })],
  },
  {
    name: 'protected pods do not hold the interrupt up',
    edits: [edit('stages/drain/pods.ts', "? 'protected'", '? undefined')],
    caughtBy: [
      fleet('evictions', 'protected-pods-interrupted', {
        mayShow: ({ nodes }) => nodes.some(({ pods }) => pods.some(({ isProtected }) => isProtected)),
      }),
    ],
  },
  {
    name: 'a pod that tolerates everything is neither evicted nor waited for',
    edits: [
      edit('stages/drain/pods.ts', 'if (namesCordon(pod) && !runsToCompletion(pod)) return', 'if (pod.spec) return'),
    ],
    caughtBy: [
      fleet('ended-pods', 'tolerating-pods-left', {
        mayShow: ({ nodes }) => nodes.some(({ pods }) => pods.some(({ toleratesAll = false }) => toleratesAll)),
      }),
    ],
  },
  {
    name: 'the nodes of a cluster that has grown are not counted again before the next drain',
    edits: [
      edit(
        'daemon/state/fleet-size.ts',
        'const atMs = clock.steadyMs()',
        'if (current) return (current = { ...current, atMs: clock.steadyMs() })\n      const atMs = clock.steadyMs()',
      ),
    ],
    caughtBy: [
      fleet('ended-pods', 'nodes-counted-once', {
        mayShow: ({ skyhooks }) => skyhooks.some(({ spec }) => spec.drain?.singleNode === 'skip'),
      }),
    ],
  },
  {
    name: 'an interrupt does not wait for the steps on its host',
    edits: [
      edit(
        'stages/interrupt/run.ts',
        "  if (states.some((state) => isStillAtWork(builder, state))) return { state: 'waiting' }\n",
        '',
      ),
      edit('stages/interrupt/run.ts', '!mayInterrupt || isBusy', '!mayInterrupt'),
      edit('stages/interrupt/run.ts', "if (reason) return { state: 'waiting', reason }", ''),
    ],
    caughtBy: [
      randomLives(/while an interrupt is under way|an interrupt runs while|differs?/),
      fleet('interrupt-apart', 'interrupt-beside-a-step'),
    ],
  },
  {
    name: 'an interrupt starts although edits of its Skyhook may be unknown',
    edits: [
      edit(
        'stages/interrupt/run.ts',
        "  if (builder.snapshot.areSkyhooksInDoubt === true) return { state: 'waiting', reason: unknownEdits }\n",
        '',
      ),
      edit('stages/interrupt/run.ts', '!mayRequest || snapshot.areSkyhooksInDoubt === true', '!mayRequest'),
    ],
    caughtBy: [unit('stages/interrupt/run.test.ts'), fleet('ended-pods', 'interrupt-before-the-news')],
  },
  {
    name: 'a step that ended before the host went down counts as unknown after the boot',
    edits: [
      edit('stages/package/attempt.ts', "if (end.outcome === 'killed' && !isSameBoot)", 'if (!isSameBoot)'),
      edit(
        'stages/package/attempt.ts',
        '`the host shut down and stopped it with ${end.signal}`',
        "'the host shut down'",
      ),
    ],
    caughtBy: [fleet('complete-once', 'ended-step-repeated-after-a-boot', { mayShow: has(['host-rebooted']) })],
  },
  {
    name: 'the confirmation of an earlier spec counts as one of the present spec',
    edits: [
      edit('stages/skyhook/slot.ts', 'isConfirmedFor(slot, view) && nowMs', "slot.ownership === 'confirmed' && nowMs"),
    ],
    caughtBy: [randomLives(/without a confirmed slot/), smallFleet(fallingBudget, unconfirmed)],
  },
  {
    name: 'a slot that is in doubt counts as owned',
    edits: [
      edit('stages/skyhook/slot.ts', "ownership === 'owned' || ownership === 'confirmed'", "ownership !== 'releasing'"),
    ],
    caughtBy: [smallFleet(twoWithFault, /a step starts without a slot/)],
  },
  {
    name: 'slots that nothing needs are kept',
    edits: [edit('stages/skyhook/slot.ts', 'return [...new Set(surplus)].map(', 'return [...new Set<OwnSlot>()].map(')],
    caughtBy: [smallFleet(twoWithFault, /never complete/)],
  },
  {
    name: 'the journal of before a new registration of the node is ignored',
    edits: [
      edit(
        'stages/decide.ts',
        'const reconciled = ',
        'if (snapshot.journal.nodeUid !== snapshot.node.metadata.uid)\n' +
          '    snapshot = { ...snapshot, journal: { ...snapshot.journal, skyhooks: {} } }\n' +
          '  const reconciled = ',
      ),
    ],
    caughtBy: [smallFleet(twoWithFault, /a half changed node asks for room/)],
  },
  {
    name: 'a spec that is known to be outdated decides',
    edits: [edit('stages/skyhook/undecided.ts', 'view.stale ||', '')],
    caughtBy: [randomLives(/by an outdated spec/)],
  },
  {
    name: 'a node leaves by a spec that is known to be outdated',
    edits: [edit('stages/skyhook/undecided.ts', 'view.stale ||', '(view.stale && isSelected(view, snapshot)) ||')],
    caughtBy: [randomLives(/(cordon|slot) of s goes by an outdated spec/)],
  },
  {
    name: 'pods that are not known count as none',
    edits: [
      edit(
        'stages/drain/drain.ts',
        "if (!snapshot.pods.known || snapshot.pods.value.since !== 'cordoned')",
        "if (!snapshot.pods.known) return { ...none, isDrained: true, watchPods: 'cordoned' }\n" +
          "  if (snapshot.pods.value.since !== 'cordoned')",
      ),
    ],
    caughtBy: [randomLives(/before the node is drained/)],
  },
  {
    name: 'the drain does not wait for protected pods',
    edits: [
      edit(
        'stages/drain/drain.ts',
        'const groups = groupPods(snapshot.pods.value.pods, spec, drainFacts(snapshot, skyhook))',
        'const groups = { ...groupPods(snapshot.pods.value.pods, spec, drainFacts(snapshot, skyhook)), protected: [] }',
      ),
    ],
    caughtBy: [randomLives(/before the node is drained/)],
  },
  {
    name: 'a pause holds nothing up',
    edits: [
      edit('stages/skyhook/gates.ts', 'isTrue(metadata.annotations?.[pauseKey])', 'isTrue(metadata.annotations?.[""])'),
    ],
    caughtBy: [randomLives(/while paused/)],
  },
  {
    name: 'the cordon stays behind',
    edits: [
      edit(
        'stages/drain/node-spec.ts',
        '...(unschedulable && !isKept && { unschedulable: false })',
        '...(unschedulable && !isKept && {})',
      ),
    ],
    caughtBy: [randomLives(/unschedulable should be/)],
  },
  {
    name: 'only the Node knows of the cordon of the work',
    edits: [edit('stages/drain/node-spec-builder.ts', '...(this.#held.size > 0 && {', '...(this.#held.size < 0 && {')],
    caughtBy: [forgetfulLives(/the cordon that the Node lost does not come back|unschedulable should be/)],
  },
  {
    name: 'the slot goes before the Node shows completion',
    edits: [
      edit(
        'stages/skyhook/plan-skyhook.ts',
        'if (slot && isInService) releaseSlot(builder, slot)',
        'if (slot) releaseSlot(builder, slot)',
      ),
    ],
    caughtBy: [randomLives(/gives back .* while its Node says/)],
  },
  {
    name: 'the work of a Skyhook is complete with its first package',
    edits: [
      edit(
        'stages/skyhook/plan-skyhook.ts',
        "states.every(({ state }) => state === 'complete')",
        "states.some(({ state }) => state === 'complete')",
      ),
    ],
    caughtBy: [randomLives(/complete is published/)],
  },
  {
    name: 'each decision increases the revision',
    edits: [
      edit(
        'stages/decide.ts',
        '? builder.record\n      :',
        '? { ...builder.record, rev: builder.record.rev + 1 }\n      :',
      ),
    ],
    caughtBy: [randomLives(/decided again, the journal differs/)],
  },
]
