import type { Plan } from '../../../src/stages/model/plan.ts'
import { type Invariant, violate } from './invariant.ts'

/** A decision is level-triggered: taken again from its own journal, it gives the same journal and the same actions. */
export const decisionsAreLevelTriggered: Invariant = ({ decide }) => ({
  decided(snapshot, plan) {
    const again = decide({ ...snapshot, journal: plan.journal }, plan.reasons)
    if (snapshot.skyhooks.known && snapshot.skyhooks.value.length > 1) {
      // an earlier Skyhook sees only in the next decision what a later one began in this; one more decision is enough
      const decidedThird = decide({ ...snapshot, journal: again.journal }, again.reasons)
      if (JSON.stringify(decidedThird.journal) !== JSON.stringify(again.journal))
        violate('decided a third time, the journal still differs')
      return
    }
    const [journal, journalAgain] = [plan, again].map(({ journal: { skyhooks } }) => JSON.stringify(skyhooks))
    if (JSON.stringify(again.journal) !== JSON.stringify(plan.journal))
      violate(`decided again, the journal differs: ${journal} then ${journalAgain}`)
    const [keys, keysAgain] = [plan, again].map(repeatedKeys)
    if (keysAgain !== keys) violate(`decided again, the actions differ: ${keys} then ${keysAgain}`)
  },
})

const repeatedKeys = ({ actions }: Plan): string =>
  actions
    .filter(({ do: what }) => !/^record|^forget/.test(what))
    .map(({ key }) => key)
    .sort()
    .join()
