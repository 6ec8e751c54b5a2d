import { type Invariant, violate } from './invariant.ts'

/** A node takes a slot without asking only if it lost one: whoever gave its slot back asks for the next one. */
export const recoveryFollowsLoss: Invariant = () => {
  /** Uids of Skyhooks. */
  const givenBack = new Set<string | undefined>()
  return {
    decided({ slots }, { actions }) {
      if (slots.known) for (const { skyhookUid, isFormer } of slots.value) if (!isFormer) givenBack.delete(skyhookUid)
      for (const action of actions)
        if (action.do === 'createRecoverySlot' && action.scope === 'skyhook' && givenBack.has(action.view.metadata.uid))
          violate(`a slot of ${action.view.metadata.name} is taken without asking, after the node gave one back`)
    },
    slotReleased({ skyhookUid, scope, isFormer }) {
      if (scope === 'skyhook' && !isFormer) givenBack.add(skyhookUid)
    },
  }
}
