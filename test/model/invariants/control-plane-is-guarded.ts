import { cordonState } from '../../../src/stages/drain/drain.ts'
import { type Invariant, violate } from './invariant.ts'

export const controlPlaneLabel = 'node-role.kubernetes.io/control-plane'

/** A control-plane node is cordoned and interrupted only under the control plane's slot, which it keeps until then. */
export const controlPlaneIsGuarded: Invariant = ({ node }) => {
  const isGuarded = (): boolean =>
    node.node.metadata.labels?.[controlPlaneLabel] === undefined ||
    node.slots.some(({ scope }) => scope === 'control-plane')
  return {
    published({ annotations }) {
      const marks = Object.entries(annotations).filter(([key, value]) => key.includes('/cordon_') && value === 'true')
      const isNew = marks.some(([key]) => node.node.metadata.annotations?.[key] !== 'true')
      if (isNew && !isGuarded()) violate('a control-plane node is cordoned without its slot')
    },
    interruptStarts() {
      if (!isGuarded()) violate('a control-plane node is interrupted without its slot')
    },
    slotReleased(slot) {
      const isLast = node.slots.filter(({ scope }) => scope === 'control-plane').length === 1
      if (slot.scope === 'control-plane' && isLast && cordonState(node.node).marks.size > 0)
        violate("the control plane's slot goes before the cordon does")
    },
  }
}
