import { type Invariant, violate } from './invariant.ts'

/** An interrupt runs only while the Node is visibly cordoned. */
export const interruptsNeedCordon: Invariant = ({ node }) => ({
  interruptStarts() {
    if (node.node.spec?.unschedulable !== true) violate('an interrupt runs without a visible cordon')
  },
})
