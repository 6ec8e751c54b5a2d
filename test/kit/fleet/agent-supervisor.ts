/** What a DaemonSet and a kubelet are to the agent of one host: it runs, and runs again some time after its death. */
import type { Budget } from '../../../src/schemas/budget.ts'
import type { Clock } from '../../../src/schemas/clock.ts'
import { settingsOf } from '../objects/sample-settings.ts'
import { type ConnectApi, type LogLine, type SimulatedAgent, startSimulatedAgent } from '../host/agent.ts'
import type { SimulatedHost } from '../host/simulated-host.ts'
import { type AgentVersion, programOf } from './journal-versions.ts'

export type AgentSupervisor = {
  /** Those that live, oldest first. */
  readonly agents: () => readonly SimulatedAgent[]
  /** SIGKILL. The next one starts after the usual pause. */
  kill(): void
  /** SIGTERM, and SIGKILL after the grace period. */
  terminate(): void
  /** No agent is started until the returned function is called; those that run stay. */
  freeze(): () => void
  /** The next agents have this version; those that run are terminated. */
  replace(version: AgentVersion): void
  /** Of the agent that runs; undefined while none does. */
  readonly version: () => AgentVersion | undefined
  readonly nextVersion: () => AgentVersion
  /** What a rollout ends with: the newest one there has been, for what it has written stops every other one. */
  readonly finalVersion: () => Exclude<AgentVersion, 'older'>
  /** The next agents take this budget for Skyhooks without one; those that run are terminated. */
  setDefault(budget: Budget): void
  /** Of the agents that live, and of the next one. */
  readonly defaultBudgets: () => readonly Budget[]
  /** Beside the one that runs. Undefined while the host is down. */
  startSecond(): SimulatedAgent | undefined
}

const [initialPauseMs, maxPauseMs] = [500, 10_000]
/** An agent that lived so long starts again at once when it dies. */
const healthyMs = 60_000
const gracePeriodMs = 30_000

export function superviseAgents(
  host: SimulatedHost,
  ports: {
    readonly clock: Clock
    readonly nodeName: () => string
    readonly connectApi: ConnectApi
    readonly onLog: (line: LogLine) => void
    readonly firstVersion: AgentVersion
    /** Of Skyhooks that name none. */
    readonly defaultBudget?: Budget | undefined
    /** It ended by an error of its own. */
    readonly onDied: (error: unknown) => void
    /** Some agent of the host runs, or none does. */
    readonly onRunning: (isRunning: boolean) => void
  },
): AgentSupervisor {
  const { clock, nodeName, connectApi, firstVersion, onLog, onDied, onRunning } = ports
  const defaults = new WeakMap<SimulatedAgent, Budget>()
  let defaultBudget = ports.defaultBudget ?? {}
  const agents: SimulatedAgent[] = []
  const versions = new WeakMap<SimulatedAgent, AgentVersion>()
  let version = firstVersion
  let finalVersion: Exclude<AgentVersion, 'older'> = 'current'
  let freezes = 0
  let pauseMs = initialPauseMs
  let isStarting = false

  function start(): SimulatedAgent {
    const startedAtMs = clock.monotonicMs()
    const name = nodeName()
    const settings = { ...settingsOf(name, '/'), podName: `agent-of-${name}`, defaultBudget }
    const agent = startSimulatedAgent(host, { settings, connectApi, onLog, run: programOf(version) })
    agents.push(agent)
    versions.set(agent, version)
    defaults.set(agent, defaultBudget)
    agent.ended.catch(onDied)
    agent.process.onEnd(() => {
      agents.splice(agents.indexOf(agent), 1)
      pauseMs = clock.monotonicMs() - startedAtMs > healthyMs ? initialPauseMs : Math.min(maxPauseMs, 2 * pauseMs)
      if (agents.length === 0) onRunning(false)
      ensure(pauseMs)
    })
    onRunning(true)
    return agent
  }

  function ensure(delayMs: number): void {
    if (isStarting) return
    isStarting = true
    clock.startTimer(delayMs, () => {
      isStarting = false
      if (freezes === 0 && host.power() === 'up' && agents.length === 0) start()
    })
  }

  function terminate(): void {
    for (const agent of agents) {
      agent.terminate()
      clock.startTimer(gracePeriodMs, () => agent.kill())
    }
  }

  host.observe(({ event }) => {
    if (event === 'booted') ensure(2_000)
  })
  ensure(1_000)

  return {
    agents: () => agents,
    kill() {
      for (let [agent] = agents; agent !== undefined; [agent] = agents) agent.kill()
    },
    terminate,
    freeze() {
      freezes++
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        freezes--
        ensure(500)
      }
    },
    replace(next) {
      version = next
      if (next === 'newer') finalVersion = next
      terminate()
    },
    version: () => (agents[0] === undefined ? undefined : versions.get(agents[0])),
    nextVersion: () => version,
    finalVersion: () => finalVersion,
    setDefault(budget) {
      defaultBudget = budget
      terminate()
    },
    defaultBudgets: () => [defaultBudget, ...agents.flatMap((agent) => defaults.get(agent) ?? [])],
    startSecond: () => (host.power() === 'up' ? start() : undefined),
  }
}
