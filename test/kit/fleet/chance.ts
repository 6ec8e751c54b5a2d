/** Choices from a seed. */
import type { Random } from '../../../src/schemas/clock.ts'
import { createSeededRandom } from '../virtual-clock.ts'

export type Chance = {
  readonly random: Random
  /** At least `from`, at most `to`. */
  readonly integer: (from: number, to: number) => number
  readonly isHit: (probability: number) => boolean
  /** Throws on an empty list. */
  readonly pick: <T>(list: readonly T[]) => T
}

/** The same seed and salt give the same choices; others are independent of them. */
export function createChance(seed: number, salt: number): Chance {
  const random = createSeededRandom(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(salt + 1, 0x85ebca6b))
  random.number() // similar seeds begin alike
  const integer = (from: number, to: number): number => from + Math.floor(random.number() * (to - from + 1))
  return {
    random,
    integer,
    isHit: (probability) => random.number() < probability,
    pick<T>(list: readonly T[]): T {
      if (list.length === 0) throw new Error('nothing to choose from')
      return list[integer(0, list.length - 1)] as T
    },
  }
}
