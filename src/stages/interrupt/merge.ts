import type { Interrupt } from '../../schemas/skyhook.ts'
import { matchesGlob } from './glob.ts'

/**
 * One interrupt for several packages: a reboot covers everything; otherwise the sysctls (restartAllServices) if anybody
 * asked for them, and the union of the services. Both together stay one interrupt of type service with `sysctls`. It is
 * `when: required` only if each of them is.
 */
export type MergedInterrupt = Interrupt & { readonly alsoRestartAllServices?: boolean }

export const isConditional = ({ when }: Interrupt): boolean => when === 'required'

export function mergeInterrupts(interrupts: readonly MergedInterrupt[]): MergedInterrupt | undefined {
  if (interrupts.length === 0) return undefined
  return { ...mergedWithoutCondition(interrupts), ...(interrupts.every(isConditional) && { when: 'required' }) }
}

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

/** The interrupts that changed keys ask for, by configInterrupts (exact key or glob). */
export const matchedInterrupts = (
  configInterrupts: Readonly<Record<string, Interrupt>> | undefined,
  keys: readonly string[],
): readonly Interrupt[] =>
  Object.entries(configInterrupts ?? {})
    .filter(([pattern]) => keys.some((key) => key === pattern || matchesGlob(pattern, key)))
    .map(([, interrupt]) => interrupt)
