import type { Clock } from '../../schemas/clock.ts'
import { type AgentState, silentAfterMs } from '../../stages/skyhook/gates.ts'

/** What the census needs of an agent's pod. */
export type AgentPod = { readonly node: string; readonly isReady: boolean }

export type Agents = {
  /** Ready agents; undefined while the pods cannot be listed. */
  readonly ready: number | undefined
  readonly of: (node: string) => AgentState
  /** Silent during the whole time that this census watched: the node counts as dead. */
  readonly isDead: (node: string) => boolean
}

type AgentLiveness = {
  /** The current state. Nothing changes while the pods cannot be listed. Nodes that no longer exist are forgotten. */
  observe(nodes: Iterable<string>, pods: Iterable<AgentPod> | undefined, nowMs: number): Agents
  /** Earliest time at which a node becomes silent without any change. */
  nextChangeAtMs(): number
}

/**
 * Finds silent agents: those without a Ready pod for ten minutes, measured by this census and not by clocks of others.
 * `initiallySilent` nodes were silent for the previous census: they stay silent until their agent is Ready, but are not
 * dead yet.
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
        // not observed meanwhile
        for (const [node, sinceMs] of missingSince) missingSince.set(node, sinceMs + nowMs - podsUnknownSinceMs)
        podsUnknownSinceMs = undefined
      }
      const readyNodes = new Set<string>()
      for (const { node, isReady } of pods) if (isReady) readyNodes.add(node)
      const present = new Set(nodes)
      for (const node of missingSince.keys()) if (!present.has(node) || readyNodes.has(node)) missingSince.delete(node)
      for (const node of silentNodes) if (!present.has(node) || readyNodes.has(node)) silentNodes.delete(node)
      nextChangeAtMs = Infinity
      const states = new Map<string, AgentState>()
      const dead = new Set<string>()
      for (const node of present) {
        if (readyNodes.has(node)) continue
        const sinceMs = missingSince.get(node) ?? nowMs
        missingSince.set(node, sinceMs)
        const isDead = nowMs - sinceMs >= afterMs
        if (isDead) {
          dead.add(node)
          silentNodes.add(node)
        } else nextChangeAtMs = Math.min(nextChangeAtMs, sinceMs + afterMs)
        states.set(node, silentNodes.has(node) ? 'silent' : 'unready')
      }
      last = {
        ready: readyNodes.size,
        // nothing is known about the others: they joined while the pods could not be listed
        of: (node) => states.get(node) ?? (present.has(node) ? 'ready' : 'unknown'),
        isDead: (node) => dead.has(node),
      }
      return last
    },
    nextChangeAtMs: () => nextChangeAtMs,
  }
}

type AgentMonitor = {
  /** Unknown before `start`. */
  readonly agents: () => Agents
  isStarted(): boolean
  /** Time counts from here. `initiallySilent` nodes were silent for the previous census. */
  start(initiallySilent: ReadonlySet<string>): void
  /** Observes nodes and pods after a change. */
  refresh(): void
  readonly stop: () => void
}

type AgentMonitorOptions = {
  readonly clock: Clock
  readonly nodes: ReadonlyMap<string, unknown>
  /** The agents' pods; undefined while they cannot be listed. */
  readonly pods: () => readonly AgentPod[] | undefined
  /** The number of ready agents changed, or the state of an agent. */
  readonly onChange: () => void
}

/** Observes which agents answer, also while only time passes. */
export function createAgentMonitor({ clock, nodes, pods, onChange }: AgentMonitorOptions): AgentMonitor {
  let agents: Agents = { ready: undefined, of: () => 'unknown', isDead: () => false }
  let liveness: AgentLiveness | undefined
  let cancelTimer = (): void => {}

  const refresh = (): void => {
    if (liveness === undefined) return
    const before = new Map([...nodes.keys()].map((name) => [name, agents.of(name)]))
    const readyBefore = agents.ready
    agents = liveness.observe(nodes.keys(), pods(), clock.monotonicMs())
    cancelTimer()
    const delayMs = liveness.nextChangeAtMs() - clock.monotonicMs()
    if (delayMs < Infinity) cancelTimer = clock.startTimer(Math.max(0, delayMs) + 1, refresh, { isBackground: true })
    if (agents.ready !== readyBefore || [...before].some(([name, state]) => agents.of(name) !== state)) onChange()
  }

  return {
    agents: () => agents,
    isStarted: () => liveness !== undefined,
    start(initiallySilent) {
      liveness = createAgentLiveness(initiallySilent)
      refresh()
    },
    refresh,
    stop: () => cancelTimer(),
  }
}
