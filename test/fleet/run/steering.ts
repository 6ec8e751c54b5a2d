/**
 * Which fault meets which phase in which run: every pair that can exist has its turns, by the number of the seed alone,
 * so that rare ones do not depend on luck.
 */
import { actionKinds } from '../../kit/fleet/action-kinds.ts'
import { type Phase, phases } from '../../kit/fleet/phase.ts'

export type Pair = { readonly kind: string; readonly phase: Phase }

/** Every fault and edit in every phase that it can be met in. */
export const pairs: readonly Pair[] = Object.entries(actionKinds).flatMap(([kind, { impossible = {} }]) =>
  phases.filter((phase) => !(phase in impossible)).map((phase) => ({ kind, phase })),
)

/** So many pairs in each run. */
const pairsPerSeed = 4
/** Far from each other, and no divisor of the count of pairs: neighbors would be one fault in many phases. */
const stride = 211

/** Every so many seeds, one of the pairs that often miss their turn has one more. */
const rareEvery = 100
const rare: readonly Pair[] = [
  { kind: 'agent-upgraded', phase: 'down' },
  { kind: 'services-fail', phase: 'waiting' },
]

/** The pairs of a run. Any `pairs.length` seeds in a row have each of them four times. */
export function pairsOf(seed: number): readonly Pair[] {
  const first = seed * pairsPerSeed
  const usual = Array.from(
    { length: pairsPerSeed },
    (_, index) => pairs[((first + index) * stride) % pairs.length] as Pair,
  )
  const extra = seed % rareEvery === 0 ? rare.slice((seed / rareEvery) % rare.length).slice(0, 1) : []
  return [...usual, ...extra]
}
