import { silentAfterMs } from '../../stages/skyhook/gates.ts'
import type { AgentPod } from '../fleet-view/fleet-view.ts'

/** Agents whose pods are gone, for as long as their nodes do not count as silent. Times in ms since 1970. */
export type DepartedAgents = {
  readonly note: (agent: AgentPod, nowMs: number) => void
  /** Represented by pods that are not Ready, at the latest since they disappeared. */
  readonly agents: (nowMs: number) => readonly AgentPod[]
}

/** A replaced pod is gone before the next one exists. At that moment the API does not show why. */
export function createDepartedAgents(): DepartedAgents {
  const byNode = new Map<string, AgentPod & { readonly sinceMs: number }>()
  return {
    note(agent, nowMs) {
      const sinceMs = agent.isReady ? nowMs : (agent.sinceMs ?? nowMs)
      byNode.set(agent.node, { ...agent, isReady: false, isDeleting: true, image: '', sinceMs })
    },
    agents(nowMs) {
      for (const [node, { sinceMs }] of byNode) if (nowMs - sinceMs >= silentAfterMs) byNode.delete(node)
      return [...byNode.values()]
    },
  }
}
