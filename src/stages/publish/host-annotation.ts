import { hostKey } from '../../schemas/annotations.ts'
import type { NodePatch } from '../../schemas/kubernetes.ts'
import { emptyPatch } from '../model/node-patch.ts'
import type { Snapshot } from '../model/snapshot.ts'

/** Publishes what the agent found on the host on the Node, even if no Skyhook selects it. */
export function hostPatch({ hostReport, node }: Snapshot): NodePatch {
  const patch = emptyPatch()
  if (hostReport !== undefined && node.metadata.annotations?.[hostKey] !== hostReport)
    patch.annotations[hostKey] = hostReport
  return patch
}
