/**
 * The admission policy of the chart that gives a holder one slot per scope, for the simulated API server. It sees every
 * write at once; the real one reads a cache and lets pairs of the same moment through.
 */
import { labelKeys } from '../../../src/lease/names.ts'
import { Refusal } from './refusals.ts'
import type { AdmissionRule, SimulatedApiServer } from './server.ts'
import type { SimObject } from './versions.ts'

/** As in chart/templates/policy-one-slot.yaml: what is refused, and beside what. */
const refusedKinds = ['slot', 'unlimited', 'recovery', 'bootstrap', 'control-plane']
const comparedKinds = ['slot', 'recovery', 'bootstrap', 'control-plane']

/** Refuses the creation of a second slot; push it to `server.admission`. It applies to all clients, agents or not. */
export function oneSlotPerHolder(server: Pick<SimulatedApiServer, 'objects'>): AdmissionRule {
  return (object, previous, { resource, namespace }) => {
    if (resource.plural !== 'leases' || previous !== undefined || !hasKind(object, refusedKinds)) return
    const { name } = object.metadata
    const other = server
      .objects('leases')
      .find(
        (lease) =>
          lease.metadata.namespace === namespace &&
          hasKind(lease, comparedKinds) &&
          lease.metadata.name !== name &&
          holderOf(lease) === holderOf(object) &&
          isLabelEqual(lease, object, labelKeys.scope) &&
          isLabelEqual(lease, object, labelKeys.nodeShard),
      )
    if (other === undefined) return
    const beside = `beside ${other.metadata.name}, which is in the same scope`
    throw new Refusal(422, `node ${String(holderOf(object))} may not have slot ${name} ${beside}`, {
      reason: 'Invalid',
      details: { name, group: resource.group, kind: resource.plural },
    })
  }
}

const hasKind = ({ metadata }: SimObject, kinds: readonly string[]): boolean =>
  kinds.includes(metadata.labels?.[labelKeys.slotKind] ?? '')
const isLabelEqual = (one: SimObject, other: SimObject, key: string): boolean =>
  one.metadata.labels?.[key] === other.metadata.labels?.[key]
const holderOf = (lease: SimObject): unknown =>
  (lease['spec'] as { holderIdentity?: unknown } | undefined)?.holderIdentity
