import type { Interrupt } from '../schemas/skyhook.ts'

/**
 * One interrupt for several packages: a reboot covers everything; otherwise the sysctls (restartAllServices) if anybody
 * asked for them, and the union of the services. Both together stay one interrupt of type service with `sysctls`.
 */
export type MergedInterrupt = Interrupt & { readonly alsoRestartAllServices?: boolean }

export function mergeInterrupts(interrupts: readonly Interrupt[]): MergedInterrupt | undefined {
  if (interrupts.length === 0) return undefined
  if (interrupts.some(({ type }) => type === 'reboot')) return { type: 'reboot' }
  const services = [...new Set(interrupts.flatMap(({ type, services = [] }) => (type === 'service' ? services : [])))].sort()
  const all = interrupts.some(({ type }) => type === 'restartAllServices')
  if (interrupts.some(({ type }) => type === 'service')) return { type: 'service', services, ...(all && { alsoRestartAllServices: true }) }
  return all ? { type: 'restartAllServices' } : { type: 'noop' }
}
