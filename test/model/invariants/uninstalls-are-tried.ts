import { isLeftBehind } from '../../../src/stages/model/package-state.ts'
import { type Invariant, violate } from './invariant.ts'

/** A package is left behind only after its uninstall failed three times. */
export const uninstallsAreTried: Invariant = ({ keyOf }) => {
  const failures = new Map<string, number>()
  return {
    decided({ journal: before }, { journal }) {
      for (const [skyhook, { packages }] of Object.entries(journal.skyhooks))
        for (const [key, entry] of Object.entries(packages)) {
          const last = before.skyhooks[skyhook]?.packages[key]
          if (!isLeftBehind(entry) || (last && isLeftBehind(last))) continue
          const failed = failures.get(`${skyhook}/${entry.name}`) ?? 0
          if (failed < 3) violate(`${skyhook} ${key} is left behind after ${failed} failed uninstalls`)
        }
    },
    stepEnds(action, succeeded) {
      const key = keyOf(action)
      if (action.stage !== 'uninstall') failures.delete(key)
      else if (!succeeded) failures.set(key, (failures.get(key) ?? 0) + 1)
    },
  }
}
