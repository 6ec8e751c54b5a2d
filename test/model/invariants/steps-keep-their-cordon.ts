import { cordonKey } from '../../../src/schemas/annotations.ts'
import { type Invariant, violate } from './invariant.ts'

/**
 * A node that is out of service for its work stays so for as long as a step of it runs, whatever becomes of the Node:
 * one that lost the mark gets it again by the next decision, with the cordon.
 */
export const stepsKeepTheirCordon: Invariant = ({ node }) => {
  /** Skyhooks of which a step ran under the cordon, until they give it back. */
  const held = new Set<string>()
  return {
    decided(snapshot, { actions, journal }) {
      const patch = actions.find((action) => action.do === 'publish')?.patch
      const isUnschedulable = patch?.unschedulable ?? snapshot.node.spec?.unschedulable === true
      for (const skyhook of new Set([...held, ...Object.keys(journal.skyhooks)])) {
        const isMarked = snapshot.node.metadata.annotations?.[cordonKey(skyhook)] === 'true'
        const change = patch?.annotations[cordonKey(skyhook)]
        const isRunning = node.running().some(({ view }) => view.metadata.name === skyhook)
        if (journal.skyhooks[skyhook]?.lifecycle === undefined || change === null) held.delete(skyhook)
        else if (isMarked && isRunning) held.add(skyhook)
        else if (!isMarked && isRunning && held.has(skyhook) && !(change === 'true' && isUnschedulable))
          violate(`a step of ${skyhook} runs, and the cordon that the Node lost does not come back`)
      }
    },
  }
}
