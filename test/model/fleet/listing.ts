/** What a consistent LIST of a scope shows a node, and what the product's admission says to it. */
import { limitOf } from '../../../src/lease/budget/budget.ts'
import { admit, type Admission, type Asking, refusalOf } from '../../../src/lease/admission.ts'
import { controlPlaneAsking } from '../../../src/lease/slot-acquisition.ts'
import type { ScopeListing } from '../../../src/lease/slot-reads.ts'
import { isHeldBy, type NodeIdentity, type Slot } from '../../../src/lease/slot.ts'
import { leaseOf, scopes } from './book.ts'
import { nodeOf } from './judge.ts'
import type { Creation, Fleet, ScopeName } from './state.ts'
import { viewOf, type World } from './world.ts'

export type Verdict =
  | { readonly verdict: 'wait' }
  /** Place of the slot among the node's own. */
  | { readonly verdict: 'held'; readonly place: number; readonly duplicates: readonly number[] }
  | { readonly verdict: 'create'; readonly creation: Creation }

/** More than any budget of a search: whichever of them is free may be picked. */
const indices = [0, 1, 2]

const identity = (who: number): NodeIdentity => ({ name: `n${who}`, uid: 'current', bootId: 'boot' })

function listingOf(world: World, fleet: Fleet, who: number, scope: ScopeName): ScopeListing {
  const slots: Slot[] = []
  for (const [index, { slots: entries, isAgentUp }] of fleet.nodes.entries()) {
    for (const [place, entry] of entries.entries()) {
      if (!entry.isInApi || entry.scope !== scope) continue
      const slot = leaseOf(entry, `n${index}`)
      if (world.rules.isListed(slot, !isAgentUp)) slots.push(index === who ? { ...slot, uid: String(place) } : slot)
    }
  }
  return { slots, ledgers: [], resourceVersion: '1' }
}

const admissionFrom = (world: World, scope: ScopeName, generation: number): ((listing: ScopeListing) => Admission) =>
  scope === 'control-plane'
    ? controlPlaneAsking.admissionFrom
    : ({ ledgers }) => ({ limit: limitOf(viewOf(world, generation), ledgers) })

/** Everything that the admission may say to the node under the generation that it knows. */
export function verdictsFor(world: World, fleet: Fleet, who: number, scope: ScopeName): readonly Verdict[] {
  const { generation, unanswered } = nodeOf(fleet, who)
  const listing = listingOf(world, fleet, who, scope)
  const asking: Asking = {
    scope: scopes[scope],
    node: identity(who),
    admissionFrom: admissionFrom(world, scope, generation),
    unansweredIndex: world.rules.remembersUnanswered ? unanswered[scope] : undefined,
  }
  const verdicts = new Map<string, Verdict>()
  for (const preferredIndex of indices) {
    const answer = admit(listing, { ...asking, preferredIndex })
    switch (answer.verdict) {
      case 'wait':
        return [{ verdict: 'wait' }]
      case 'held':
        return [{ verdict: 'held', place: placeOf(answer.slot), duplicates: answer.duplicates.map(placeOf) }]
      case 'create': {
        if (!('index' in answer.target)) throw new Error('every budget of the model is a number')
        const creation: Creation = { scope, at: answer.target.index }
        verdicts.set(String(creation.at), { verdict: 'create', creation })
      }
    }
  }
  return [...verdicts.values()]
}

const placeOf = ({ uid }: Slot): number => Number(uid)

/** Whether the slot would be granted again: by a LIST of now, and the limit of a generation that was read before. */
export function isRefused(world: World, fleet: Fleet, who: number, place: number, generation: number): boolean {
  const listing = listingOf(world, fleet, who, 'skyhook')
  const own = listing.slots.find((slot) => slot.holder === `n${who}` && slot.uid === String(place))
  if (!own) throw new Error('the slot is not in the LIST')
  const duplicates = listing.slots.filter((slot) => slot !== own && isHeldBy(slot, identity(who)))
  const asking = { scope: scopes.skyhook, admissionFrom: admissionFrom(world, 'skyhook', generation) }
  return refusalOf(listing, { own, duplicates }, asking) !== undefined
}
