/** Follows one host of a fleet and says in which phase of its work it is. */
import { cordonKey } from '../../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'
import type { SimObject } from '../api-server/versions.ts'
import { slotsOf } from '../../promises/cluster.ts'
import type { FleetHost } from './fleet-host.ts'
import type { Phase } from './phase.ts'

const cordonPrefix = cordonKey('')
const statusPrefix = cordonKey('').replace('cordon_', 'status_')

/** Observes the host from now on; returns what tells its phase. */
export function trackPhase({ host, truth, nodeName, hasJoined }: FleetHost, server: SimulatedApiServer): () => Phase {
  let hasBooted = false
  let hasWorked = false
  let isWorkDone = false
  host.observe((one) => {
    if (one.event === 'stepStarted') {
      hasWorked = true
      hasBooted = false
      isWorkDone = true
    } else if (one.event === 'booted') hasBooted = true
  })

  return () => {
    if (!hasJoined()) return 'idle'
    if (host.power() !== 'up') return 'down'
    if (truth.isInterrupted()) return 'interrupting'
    if (host.systemd.runningSteps().length > 0) return 'step'
    const name = nodeName()
    const node = server.object('nodes', undefined, name) as (SimObject & KubernetesNode) | undefined
    const hasSlot = slotsOf({ server }).some(({ holder }) => holder === name)
    const { isCordoned, isComplete } = lookOf(node)
    if (!hasSlot && !isCordoned && truth.openPackages().size === 0) {
      isWorkDone = false
      if (!isComplete) return 'waiting'
      return hasWorked ? 'released' : 'idle'
    }
    if (hasBooted && isWorkDone) return 'booted'
    if (truth.openPackages().size > 0) return 'between-steps'
    if (isWorkDone) return 'completing'
    return isCordoned ? 'draining' : 'slot-held'
  }
}

type Look = { readonly isCordoned: boolean; readonly isComplete: boolean }

/** Each version of a Node is an object that never changes. */
const looks = new WeakMap<object, Look>()

function lookOf(node: KubernetesNode | undefined): Look {
  const known = node && looks.get(node)
  if (known !== undefined) return known
  const annotations = Object.entries(node?.metadata.annotations ?? {})
  const look = {
    isCordoned: annotations.some(([key]) => key.startsWith(cordonPrefix)),
    isComplete: annotations.every(([key, value]) => !key.startsWith(statusPrefix) || value === 'complete'),
  }
  if (node !== undefined) looks.set(node, look)
  return look
}
