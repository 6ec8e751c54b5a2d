/** Which packages a Node does not show as complete. Pure. */
import { ownValue } from '../../../schemas/json.ts'
import type { Published } from '../../../schemas/published.ts'
import type { SkyhookSpec } from '../../../schemas/skyhook.ts'
import { packageKey } from '../../../stages/model/snapshot.ts'

/** Names of packages of the spec, at its versions. */
export const incompleteIn = ({ packages = {} }: SkyhookSpec, { entries, companion }: Published): ReadonlySet<string> =>
  new Set(
    Object.entries(packages).flatMap(([name, { version }]) => {
      const key = packageKey(name, version)
      const { stage, state } = entries?.get(key) ?? {}
      const isInterruptPending = ownValue(companion?.work, key)?.interrupt !== undefined
      const isLast = stage === 'post-interrupt' || (stage === 'config' && !isInterruptPending)
      return state === 'complete' && isLast ? [] : [name]
    }),
  )
