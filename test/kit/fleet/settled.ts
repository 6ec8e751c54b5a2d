/** Whether a fleet has nothing left to do, as the cluster shows it. */
import { cordonKey, ignoreLabel, statusKey } from '../../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import { selects } from '../../../src/schemas/selectors.ts'
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import type { SimObject } from '../api-server/versions.ts'
import { slotsOf } from '../../promises/cluster.ts'
import type { World } from './world.ts'

/** Undefined if so, else the first thing that is left to do. */
export function unsettledReason({ server, hosts }: World): string | undefined {
  if (server.isAway()) return 'the API server is away'
  for (const { host, name } of hosts.values()) if (host.power() !== 'up') return `${name} is down`
  const [slot] = slotsOf({ server })
  if (slot !== undefined) return `${slot.holder} holds ${slot.name} (${slot.phase})`
  const skyhooks = server.objects('skyhooks') as readonly (SimObject & { readonly spec: SkyhookSpec })[]
  for (const node of server.objects('nodes') as readonly (SimObject & KubernetesNode)[]) {
    const { name, labels = {}, annotations = {} } = node.metadata
    const cordon = Object.keys(annotations).find((key) => key.startsWith(cordonKey('')))
    if (cordon !== undefined) return `${name} has ${cordon}`
    for (const { metadata, spec } of skyhooks) {
      if (metadata.deletionTimestamp !== undefined) return `${metadata.name} is being deleted`
      if (labels[ignoreLabel] !== undefined || !selects(spec.nodeSelectors, labels)) continue
      const status = annotations[statusKey(metadata.name)]
      if (status !== 'complete') return `${metadata.name} is ${status ?? 'without a status'} on ${name}`
    }
  }
  return undefined
}
