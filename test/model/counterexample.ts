import fc from 'fast-check'
import { isShrinking } from '../kit/effort.ts'

/**
 * The first life with which a property does not hold, as small as it becomes, and the seed that finds it again;
 * undefined if it holds with all of them.
 */
export function counterexampleOf(
  property: fc.IProperty<unknown>,
  options: { readonly numRuns: number; readonly seed: number },
): string | undefined {
  const { failed, counterexample, errorInstance } = fc.check(property, { ...options, endOnFailure: !isShrinking })
  if (!failed) return undefined
  return `${String(errorInstance)}\n${JSON.stringify(counterexample)}\nSEARCH_SEED=${options.seed}`
}
