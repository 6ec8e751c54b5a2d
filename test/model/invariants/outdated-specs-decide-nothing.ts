import type { SkyhookView } from '../../../src/stages/model/snapshot.ts'
import { cordonKey } from '../../../src/schemas/annotations.ts'
import { describeStep } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** While a newer spec of a Skyhook is being read, nothing starts for it, and its slot and its cordon stay. */
export const outdatedSpecsDecideNothing: Invariant = ({ node }) => {
  const isOutdated = ({ metadata }: Pick<SkyhookView, 'metadata'>): boolean =>
    node.views.get(metadata.name)?.metadata.uid === metadata.uid && node.views.get(metadata.name)?.stale === true
  return {
    stepStarts(action) {
      if (isOutdated(action.view)) violate(`${describeStep(action)} runs by an outdated spec`)
    },
    interruptStarts(_run, view) {
      if (isOutdated(view)) violate(`an interrupt of ${view.metadata.name} starts by an outdated spec`)
    },
    slotReleased({ scope, uid, skyhookUid }) {
      const view = [...node.views.values()].find(({ metadata }) => metadata.uid === skyhookUid)
      const isSecond = node.slots.some((other) => other.skyhookUid === skyhookUid && other.uid !== uid)
      if (scope === 'skyhook' && view?.stale && !isSecond)
        violate(`the slot of ${view.metadata.name} goes by an outdated spec`)
    },
    published({ annotations }) {
      for (const [name, { stale }] of node.views)
        if (stale && annotations[cordonKey(name)] === null) violate(`the cordon of ${name} goes by an outdated spec`)
    },
  }
}
