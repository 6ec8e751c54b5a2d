/** Bugs in what a node decides: src/stages, and how its agent carries it out. */
import { change, has, type FleetMutant } from './mutant.ts'

export const stageBugs: readonly FleetMutant[] = [
  {
    name: 'work-starts-unconfirmed',
    rule: 'budget',
    bug: 'work starts under a slot that was granted and not confirmed',
    changes: [
      change(
        'stages/skyhook/slot.ts',
        '(hasStarted ? isOwned(slot) : mayStartUnder(slot, view, snapshot.nowMs))',
        'isOwned(slot)',
      ),
    ],
  },
  {
    name: 'released-before-uncordoned',
    rule: 'slots-kept',
    bug: 'a complete node gives its slot back while it is still cordoned',
    changes: [
      change(
        'stages/skyhook/plan-skyhook.ts',
        'if (slot && isInService) releaseSlot(builder, slot)',
        'if (slot) releaseSlot(builder, slot)',
      ),
      change('stages/skyhook/slot.ts', '  if (hasCordon(builder.snapshot, builder.view.metadata.name)) return\n', ''),
    ],
  },
  {
    name: 'half-changed-node-yields',
    rule: 'slots-kept',
    bug: 'a node whose package fails gives its slot back in the middle of the change',
    changes: [change('stages/skyhook/plan-working.ts', '!isRunning && !isHalfChanged(builder)', '!isRunning')],
    mayShow: has(['steps-fail']),
  },
  {
    name: 'unselected-node-releases-at-once',
    rule: 'slots-kept',
    bug: 'a node that leaves the selector gives its slot back while a step runs',
    changes: [
      change(
        'stages/skyhook/departure.ts',
        '    if (slot) releaseSlot(builder, slot)\n  }\n  return departing(',
        '  }\n  if (slot) releaseSlot(builder, slot)\n  return departing(',
      ),
    ],
    mayShow: has(['selector', 'node-relabeled']),
  },
  {
    name: 'unselected-node-continues-unasked',
    rule: 'budget',
    bug: 'a node that left the selector half changed continues without asking when it is selected again',
    changes: [
      change('stages/skyhook/lifecycle.ts', 'builder.record = { ...record, lifecycle: undefined }', 'void record'),
    ],
    mayShow: has(['selector', 'node-relabeled']),
  },
  {
    name: 'cordon-of-an-administrator-taken-off',
    rule: 'cordon',
    bug: 'who wanted the node cordoned before is forgotten when the agent uncordons it',
    changes: [
      change('stages/drain/cordon-ownership.ts', 'const isKept = keep || before === true', 'const isKept = keep'),
    ],
    mayShow: has(['cordoned']),
  },
  {
    name: 'cordon-not-renewed',
    rule: 'progress',
    bug: 'a node that a person uncordoned in the middle of the work is not cordoned again',
    changes: [
      change(
        'stages/drain/cordon-ownership.ts',
        'if (unschedulable && isMarked) return undefined',
        'if (isMarked) return undefined',
      ),
    ],
    mayShow: has(['uncordoned', 'cordoned']),
  },
  {
    name: 'protected-pods-interrupted',
    rule: 'evictions',
    bug: 'protected pods do not hold the interrupt up',
    changes: [change('stages/drain/pods.ts', "? 'protected'", '? undefined')],
    mayShow: ({ nodes }) => nodes.some(({ pods }) => pods.some(({ isProtected }) => isProtected)),
  },
  {
    name: 'tolerating-pods-left',
    rule: 'ended-pods',
    bug: 'a pod that tolerates everything is neither evicted nor waited for',
    changes: [
      change('stages/drain/pods.ts', 'if (namesCordon(pod) && !runsToCompletion(pod)) return', 'if (pod.spec) return'),
    ],
    mayShow: ({ nodes }) => nodes.some(({ pods }) => pods.some(({ toleratesAll = false }) => toleratesAll)),
  },
  {
    name: 'nodes-counted-once',
    rule: 'ended-pods',
    bug: 'the nodes of a cluster that has grown are not counted again before the next drain',
    changes: [
      change(
        'daemon/executors/count-nodes.ts',
        'const atMs = clock.steadyMs()',
        'if (current) return (current = { ...current, atMs: clock.steadyMs() })\n      const atMs = clock.steadyMs()',
      ),
    ],
    mayShow: ({ skyhooks }) => skyhooks.some(({ spec }) => spec.drain?.singleNode === 'skip'),
  },
  {
    name: 'interrupt-beside-a-step',
    rule: 'interrupt-apart',
    bug: 'an interrupt does not wait for the steps on its host',
    changes: [
      change(
        'stages/interrupt/run.ts',
        "  if (states.some((state) => isStillAtWork(builder, state))) return { state: 'waiting' }\n",
        '',
      ),
      change('stages/interrupt/run.ts', '!mayInterrupt || isBusy', '!mayInterrupt'),
      change('stages/interrupt/run.ts', "if (reason) return { state: 'waiting', reason }", ''),
    ],
  },
  {
    name: 'ended-step-repeated-after-a-boot',
    rule: 'complete-once',
    bug: 'a step that ended before the host went down counts as unknown after the boot',
    changes: [
      change('stages/package/attempt.ts', "if (end.outcome === 'killed' && !isSameBoot)", 'if (!isSameBoot)'),
      change(
        'stages/package/attempt.ts',
        '`the host shut down and stopped it with ${end.signal}`',
        "'the host shut down'",
      ),
    ],
    mayShow: has(['host-rebooted']),
  },
]
