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

export type Silence = {
  /** What is known now. `pods` undefined = they cannot be listed: everything stays as it was. Nodes that are no more are forgotten. */
  look(nodes: Iterable<string>, pods: Iterable<AgentPod> | undefined, nowMs: number): Agents
  /** Earliest moment at which a node becomes silent by the passing of time alone. */
  nextMs(): number
}

/** Longer than any agent takes to be replaced, image pull on a slow link included. */
export const SILENT_AFTER_MS = 10 * 60_000

/**
 * Tells which agents are silent: no pod, or none that is Ready, for ten minutes of this census's own watching. Clocks of others are not
 * asked. `knownSilent` are nodes that the census before called so: until their agent is Ready they stay it, but they are not dead yet.
 */
export function createSilence(knownSilent: ReadonlySet<string>, afterMs = SILENT_AFTER_MS): Silence {
  const missingSince = new Map<string, number>()
  const carried = new Set(knownSilent)
  let last: Agents = { ready: undefined, of: (node) => (carried.has(node) ? 'silent' : 'unknown'), isDead: () => false }
  let blindSinceMs: number | undefined
  let nextMs = Infinity

  return {
    look(nodes, pods, nowMs) {
      if (pods === undefined) {
        blindSinceMs ??= nowMs
        nextMs = Infinity
        return last
      }
      if (blindSinceMs !== undefined) {
        for (const [node, sinceMs] of missingSince) missingSince.set(node, sinceMs + nowMs - blindSinceMs) // nobody watched meanwhile
        blindSinceMs = undefined
      }
      const readyNodes = new Set<string>()
      for (const { node, isReady } of pods) if (isReady) readyNodes.add(node)
      const present = new Set(nodes)
      for (const node of missingSince.keys()) if (!present.has(node) || readyNodes.has(node)) missingSince.delete(node)
      for (const node of carried) if (!present.has(node) || readyNodes.has(node)) carried.delete(node)
      nextMs = Infinity
      const states = new Map<string, AgentState>()
      for (const node of present) {
        if (readyNodes.has(node)) continue
        const sinceMs = missingSince.get(node) ?? nowMs
        missingSince.set(node, sinceMs)
        const isDead = nowMs - sinceMs >= afterMs
        if (!isDead) nextMs = Math.min(nextMs, sinceMs + afterMs)
        if (isDead) carried.add(node)
        states.set(node, carried.has(node) ? 'silent' : 'late')
      }
      const dead = new Set([...states.keys()].filter((node) => nowMs - (missingSince.get(node) ?? nowMs) >= afterMs))
      last = { ready: readyNodes.size, of: (node) => states.get(node) ?? 'ready', isDead: (node) => dead.has(node) }
      return last
    },
    nextMs: () => nextMs,
  }
}
