import type { Clock } from '../schemas/clock.ts'
import { createAgentLiveness, type AgentLiveness, type AgentPod, type Agents } from './agent-liveness.ts'

export type AgentMonitor = {
  /** Unknown before `start`. */
  readonly agents: () => Agents
  isStarted(): boolean
  /** Time counts from here. `initiallySilent` nodes were silent for the previous census. */
  start(initiallySilent: ReadonlySet<string>): void
  /** Observes nodes and pods after a change. */
  refresh(): void
  readonly stop: () => void
}

export type AgentMonitorOptions = {
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
