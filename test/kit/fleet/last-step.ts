/** When a change of a package is finished on a host, as far as its steps tell. */
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'
import type { HostStep } from '../host/observer.ts'

/** Whether nothing of the package is to follow this step, by the Skyhook as it is now. */
export function isLastStep(server: SimulatedApiServer, { skyhook, package: name, mode }: HostStep): boolean {
  if (mode === 'uninstall-check' || mode === 'post-interrupt-check') return true
  if (mode !== 'config-check') return false
  const spec = server.object('skyhooks', undefined, skyhook)?.['spec'] as SkyhookSpec | undefined
  return spec?.packages?.[name]?.interrupt === undefined
}
