import type { AgentState } from './node-facts.ts'

/** A pod of an agent, as far as the census looks at it. */
export type AgentPod = { readonly node: string; readonly isReady: boolean }

export type Agents = {
  /** Ready agents; undefined while the pods cannot be listed. */
  readonly ready: number | undefined
  readonly of: (node: string) => AgentState
  /** Silent for the whole time before the eyes of this census: the node is taken for dead. */
  readonly isDead: (node: string) => boolean
}

export type AgentLiveness = {
  /** What is known now. Without pods (they cannot be listed) everything stays. Nodes that are gone are forgotten. */
  observe(nodes: Iterable<string>, pods: Iterable<AgentPod> | undefined, nowMs: number): Agents
  /** Earliest moment at which a node becomes silent by the passing of time alone. */
  nextChangeAtMs(): number
}

/** Longer than any agent takes to be replaced, image pull on a slow link included. */
const silentAfterMs = 10 * 60_000

/**
 * Tells which agents are silent: no pod, or none that is Ready, for ten minutes of this census's own watching. Clocks
 * of others are not asked. `initiallySilent` are nodes that the census before called so: until their agent is Ready
 * they stay it, but they are not dead yet.
 */
export function createAgentLiveness(initiallySilent: ReadonlySet<string>, afterMs = silentAfterMs): AgentLiveness {
  const missingSince = new Map<string, number>()
  const silentNodes = new Set(initiallySilent)
  let last: Agents = {
    ready: undefined,
    of: (node) => (silentNodes.has(node) ? 'silent' : 'unknown'),
    isDead: () => false,
  }
  let podsUnknownSinceMs: number | undefined
  let nextChangeAtMs = Infinity

  return {
    observe(nodes, pods, nowMs) {
      if (pods === undefined) {
        podsUnknownSinceMs ??= nowMs
        nextChangeAtMs = Infinity
        return last
      }
      if (podsUnknownSinceMs !== undefined) {
        for (const [node, sinceMs] of missingSince) missingSince.set(node, sinceMs + nowMs - podsUnknownSinceMs) // nobody watched meanwhile
        podsUnknownSinceMs = undefined
      }
      const readyNodes = new Set<string>()
      for (const { node, isReady } of pods) if (isReady) readyNodes.add(node)
      const present = new Set(nodes)
      for (const node of missingSince.keys()) if (!present.has(node) || readyNodes.has(node)) missingSince.delete(node)
      for (const node of silentNodes) if (!present.has(node) || readyNodes.has(node)) silentNodes.delete(node)
      nextChangeAtMs = Infinity
      const states = new Map<string, AgentState>()
      for (const node of present) {
        if (readyNodes.has(node)) continue
        const sinceMs = missingSince.get(node) ?? nowMs
        missingSince.set(node, sinceMs)
        const isDead = nowMs - sinceMs >= afterMs
        if (!isDead) nextChangeAtMs = Math.min(nextChangeAtMs, sinceMs + afterMs)
        if (isDead) silentNodes.add(node)
        states.set(node, silentNodes.has(node) ? 'silent' : 'unready')
      }
      const dead = new Set([...states.keys()].filter((node) => nowMs - (missingSince.get(node) ?? nowMs) >= afterMs))
      last = { ready: readyNodes.size, of: (node) => states.get(node) ?? 'ready', isDead: (node) => dead.has(node) }
      return last
    },
    nextChangeAtMs: () => nextChangeAtMs,
  }
}
