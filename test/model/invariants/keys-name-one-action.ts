import { type Invariant, violate } from './invariant.ts'

/** A key names one action: two different actions of a plan never share it. */
export const keysNameOneAction: Invariant = () => ({
  decided(_snapshot, { actions }) {
    const keys = actions.map(({ key }) => key)
    const differentActions = new Set(actions.map((action) => JSON.stringify(action)))
    if (differentActions.size !== new Set(keys).size) violate(`two different actions under one key: ${keys.join(' ')}`)
  },
})
