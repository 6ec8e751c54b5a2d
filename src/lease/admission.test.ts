import { expect, test } from 'vitest'
import { listedSlot } from '../../test/kit/slots/listed-slot.ts'
import { refusalOf } from './admission.ts'
import { skyhookScope } from './names.ts'
import type { Slot, SlotTarget } from './slot.ts'

const scope = skyhookScope({ name: 's', uid: 'uid' })
const node = { name: 'n1', uid: 'n1-uid', bootId: 'boot' }

const slotOf = (target: SlotTarget, epoch?: number): Slot => listedSlot(scope, target, node, { epoch })

test.each([
  ['a recovery slot beside a budget', slotOf({ kind: 'recovery' }), { limit: 5 }, recoveryReason()],
  ['a recovery slot beside a batch', slotOf({ kind: 'recovery' }), { limit: 5, epoch: 7 }, recoveryReason()],
  ['a slot without a budget', slotOf({ kind: 'unlimited' }), { limit: 5 }, 'the slot was granted without a budget'],
  [
    'a slot of no batch',
    slotOf({ index: 0 }),
    { limit: 5, epoch: 7 },
    'the slot was granted outside of the batches of a policy',
  ],
  ['a slot of an earlier batch', slotOf({ index: 0 }, 6), { limit: 5, epoch: 7 }, 'batch 6 is over'],
  ['a slot of a budget that fell', slotOf({ index: 0 }), { limit: 0 }, 'the budget fell to 0 while 1 slot was held'],
  ['a slot of a rollout that was stopped', slotOf({ index: 0 }, 7), { limit: 0, epoch: 7, stop: 'stopped' }, 'stopped'],
])('%s is refused with the reason', (_, own, admission, reason) => {
  const listing = { slots: [own], ledgers: [], resourceVersion: '' }
  expect(refusalOf(listing, { own, duplicates: [] }, { scope, admissionFrom: () => admission })).toBe(reason)
})

function recoveryReason(): string {
  return 'the slot was created for running work, which has finished'
}
