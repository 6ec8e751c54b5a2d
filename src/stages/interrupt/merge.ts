import { canonicalJson } from '../../schemas/canonical-json.ts'
import type { MergedInterrupt } from '../../schemas/package-record.ts'
import { matchesGlob } from '../../schemas/selectors.ts'
import type { Interrupt } from '../../schemas/skyhook.ts'

/** True if the package itself reports, after its config, whether it needs the interrupt. */
export const isConditional = ({ when }: Interrupt): boolean => when === 'required'

/**
 * One interrupt for several packages. A reboot covers everything; otherwise it is the union of the services, with
 * restartAllServices if one of them has it. Both together are one interrupt of type service with
 * `alsoRestartAllServices`. It is `when: required` only if each of them is.
 */
export function mergeInterrupts(interrupts: readonly MergedInterrupt[]): MergedInterrupt | undefined {
  if (interrupts.length === 0) return undefined
  return { ...mergedWithoutCondition(interrupts), ...(interrupts.every(isConditional) && { when: 'required' }) }
}

/** The same for an interrupt that must run now, regardless of its condition. */
export const mergeForRun = (interrupts: readonly MergedInterrupt[]): MergedInterrupt | undefined =>
  interrupts.length === 0 ? undefined : mergedWithoutCondition(interrupts)

/** Whether `done` covers all of `desired`. */
export const coversInterrupt = (done: MergedInterrupt, desired: MergedInterrupt): boolean =>
  canonicalJson(mergedWithoutCondition([done, desired])) === canonicalJson(mergedWithoutCondition([done]))

function mergedWithoutCondition(interrupts: readonly MergedInterrupt[]): MergedInterrupt {
  if (interrupts.some(({ type }) => type === 'reboot')) return { type: 'reboot' }
  const services = [
    ...new Set(interrupts.flatMap(({ type, services = [] }) => (type === 'service' ? services : []))),
  ].sort()
  const restartsAll = interrupts.some(
    ({ type, alsoRestartAllServices }) => type === 'restartAllServices' || alsoRestartAllServices === true,
  )
  if (interrupts.some(({ type }) => type === 'service'))
    return { type: 'service', services, ...(restartsAll && { alsoRestartAllServices: true }) }
  return restartsAll ? { type: 'restartAllServices' } : { type: 'noop' }
}

/** The interrupts that changed keys require, by configInterrupts (exact key or glob). */
export const matchedInterrupts = (
  configInterrupts: Readonly<Record<string, Interrupt>> | undefined,
  keys: readonly string[],
): readonly Interrupt[] =>
  Object.entries(configInterrupts ?? {})
    .filter(([pattern]) => keys.some((key) => key === pattern || matchesGlob(pattern, key)))
    .map(([, interrupt]) => interrupt)
