/** Bugs in what an agent and a census know and write: src/kube, src/census, src/daemon/state. */
import { change, has, type FleetMutant } from './mutant.ts'

export const clusterBugs: readonly FleetMutant[] = [
  {
    name: 'node-written-over',
    rule: 'cordon',
    bug: 'a Node is patched without the version that the patch was computed from',
    changes: [
      change(
        'kube/node-writer.ts',
        'metadata: { resourceVersion, annotations, labels }',
        'metadata: { annotations, labels }',
      ),
    ],
    mayShow: has(['cordoned'], ['watches-slow', 'api-reads-stale', 'network-cut', 'watches-cut', 'api-slow']),
  },
  {
    name: 'expired-watch-repeated',
    rule: 'progress',
    bug: 'a watch whose version is gone is opened again from that version, without a LIST',
    changes: [
      change(
        'kube/reflector.ts',
        "if (during === 'watch' && (relistsAfterOverload",
        "if (during === 'list' && (relistsAfterOverload",
      ),
    ],
    mayShow: has(['api-server-down', 'etcd-restored', 'network-cut']),
  },
  {
    name: 'list-repeated-without-a-pause',
    rule: 'request-rate',
    bug: 'a LIST or watch that fails is repeated at once',
    changes: [
      change('kube/reflector.ts', '?? backoffMs(++failures, timing.backoff, random.number())', '?? 0 * ++failures'),
    ],
    mayShow: has(['api-errors', 'api-refusals', 'network-cut', 'api-server-down']),
  },
  {
    name: 'failed-action-repeated-without-a-pause',
    rule: 'request-rate',
    bug: 'an action that fails is tried again at once',
    changes: [change('daemon/failures/book.ts', 'notBeforeMs: nowMs + waitMs', 'notBeforeMs: 0 * (nowMs + waitMs)')],
    mayShow: has(['api-errors', 'api-refusals', 'network-cut', 'api-server-down']),
  },
  {
    name: 'doubtful-spec-believed',
    rule: 'progress',
    bug: 'a spec in doubt counts as current: after a restore of etcd, another one of its generation is never read',
    changes: [change('daemon/state/skyhook-reads.ts', '        !entry.isInDoubt &&\n', '')],
    mayShow: has(['etcd-restored']),
  },
  {
    name: 'leader-without-a-count',
    rule: 'counted',
    bug: 'an elected agent stays so while its census does not count',
    changes: [change('daemon/census/supervisor.ts', '() => endTerm(startedAtMs)', '() => undefined')],
    mayShow: has(['census-hung', 'census-lists-silent', 'census-node-deleted']),
  },
  {
    name: 'rise-never-published',
    rule: 'ledger-fresh',
    bug: 'the census keeps a lower count when nodes come back',
    changes: [
      change(
        'census/damped-count.ts',
        'if (nowMs - pendingRise.sinceMs < riseDelayMs)',
        'if (pendingRise.sinceMs > 0)',
      ),
    ],
    mayShow: has(['node-relabeled', 'node-deleted', 'host-wiped-and-registered']),
  },
  {
    name: 'finalizer-written-back',
    rule: 'backs-off',
    bug: 'the census writes the list of finalizers without taking its own out',
    changes: [
      change(
        'census/finalizer.ts',
        "return plan === 'add' ? [...others, finalizerName] : others",
        "return plan === 'add' ? [...others, finalizerName] : finalizers",
      ),
    ],
    mayShow: has(['skyhook-deleted']),
  },
  {
    name: 'ready-before-the-last-node',
    rule: 'ready-true',
    bug: 'the census says Ready while one node is not complete',
    changes: [
      change(
        'census/conditions.ts',
        "if (complete === nodes.length)\n    return { status: 'True'",
        "if (complete >= nodes.length - 1)\n    return { status: 'True'",
      ),
    ],
  },
]
