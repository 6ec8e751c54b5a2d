/** Bugs in the protocol of slots: src/lease and src/daemon/slots. */
import { all, change, has, hasControlPlanes, type FleetMutant } from './mutant.ts'

const hasPercentage = ({ skyhooks }: Parameters<NonNullable<FleetMutant['mayShow']>>[0]): boolean =>
  skyhooks.some(({ spec }) => spec.interruptionBudget?.percent !== undefined)

export const slotBugs: readonly FleetMutant[] = [
  {
    name: 'admission-by-index-alone',
    rule: 'budget',
    bug: 'slots above an index do not count: after a cut of the budget too many are admitted',
    changes: [change('lease/rule.ts', 'if (index + above >= end) continue', 'if (index >= end) continue')],
    mayShow: has(['budget']),
  },
  {
    name: 'recovery-slots-not-counted',
    rule: 'budget',
    bug: 'a node whose slot was lost and created again takes no capacity',
    changes: [
      change(
        'lease/slot.ts',
        'if (holdersAbove.has(slot.holder)) return []',
        "if (slot.kind === 'recovery' || holdersAbove.has(slot.holder)) return []",
      ),
    ],
    mayShow: has(['lease-deleted', 'etcd-restored', 'node-deleted', 'host-wiped-and-registered']),
  },
  {
    name: 'former-skyhook-not-counted',
    rule: 'budget',
    bug: 'slots of an earlier Skyhook of the same name take no capacity from the present one',
    changes: [
      change('lease/slot.ts', "return (slot.kind === 'bootstrap') === (scope.kind === 'bootstrap')", 'return false'),
    ],
    mayShow: has(['skyhook-deleted']),
  },
  {
    name: 'slot-without-owner',
    rule: 'slots-owned',
    bug: 'nobody collects the slot of a Node that is gone',
    changes: [
      change(
        'lease/slot.ts',
        "      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid }],\n",
        '      ownerReferences: [],\n',
      ),
    ],
    mayShow: has(['node-renamed']),
  },
  {
    name: 'admission-never-repeated',
    rule: 'budget',
    bug: 'a slot that was admitted under an earlier spec is confirmed without a look at the slots of others',
    changes: [
      change(
        'daemon/slots/confirmation.ts',
        "if (ownership === 'seen' || admittedUnder?.generation !== (metadata.generation ?? 0)) return false",
        "if (ownership === 'seen') return false",
      ),
    ],
    mayShow: has(['budget']),
  },
  {
    name: 'percentage-rounded-up',
    rule: 'budget',
    bug: 'a percentage of the nodes is rounded up',
    changes: [change('lease/rule.ts', '(hundredths - (hundredths % 100)) / 100', 'Math.ceil(hundredths / 100)')],
    mayShow: hasPercentage,
  },
  {
    name: 'any-slot-of-the-name-deleted',
    rule: 'budget',
    bug: 'a release without preconditions: repeated, it deletes the slot of the next holder',
    changes: [
      change(
        'lease/slots.ts',
        'const preconditions = { uid: current.uid, resourceVersion: current.resourceVersion }',
        'const preconditions = {}',
      ),
    ],
    mayShow: has(['api-commits-late', 'api-answers-lost', 'api-fails-after-commit', 'network-cut']),
  },
  {
    name: 'control-plane-slot-kept',
    rule: 'slots-owned',
    bug: 'nobody gives the slot of the control plane back',
    changes: [
      change(
        'stages/skyhook/surplus-slots.ts',
        "...(isControlPlaneUnused(snapshot, journal, needsControlPlane) ? firstOf(current, 'control-plane') : []),",
        '',
      ),
    ],
    mayShow: hasControlPlanes(1),
  },
  {
    name: 'slot-not-read-after-a-conflict',
    rule: 'backs-off',
    bug: 'a renewal whose answer was lost is repeated over the version before it, for ever',
    changes: [
      change(
        'lease/slots.ts',
        '    current = observed.slot // somebody else wrote into it, or the answer to a PUT of ours was lost\n',
        '',
      ),
    ],
    mayShow: has(['api-answers-lost', 'api-fails-after-commit']),
  },
  {
    name: 'deletion-under-way-forgotten',
    rule: 'control-plane',
    bug: 'a slot counts as owned while its DELETE is under way, and goes back while the pods in the way are unknown',
    changes: [
      change('stages/skyhook/slot.ts', "ownership === 'owned' || ownership === 'confirmed'", "ownership !== 'seen'"),
      change('stages/skyhook/control-plane.ts', "drain.reason === undefined ? 'while-held' : 'nothing'", "'nothing'"),
    ],
    mayShow: all(hasControlPlanes(2), ({ skyhooks }) => skyhooks.some(({ spec }) => spec.drain?.cordon === 'late')),
  },
  {
    name: 'own-write-not-known',
    rule: 'slots-kept',
    bug: 'the agent knows of its own cordon only once the watch shows it, and gives the slot back meanwhile',
    changes: [
      change('daemon/executors/publish.ts', '    source.written(patchedNode(node, patch, result.metadata))\n', ''),
    ],
    mayShow: has(['watches-slow']),
  },
]
