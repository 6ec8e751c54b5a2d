/**
 * The protocol between an agent and the census, its child process: JSON lines. The agent sends the settings as the
 * first line of the child's stdin and keeps stdin open. When stdin closes, for any reason, the child ends.
 */
import type { FleetSeries } from '../../schemas/catalogue/fleet-metrics.ts'
import type { Budget } from '../../schemas/budget.ts'
import { isObject, parseJson, type JsonObject } from '../../schemas/json.ts'

export type CensusSettings = {
  readonly v: 1
  readonly version: string
  readonly nodeName: string
  /** A list of pods without this one is not trusted. */
  readonly podName: string
  readonly namespace: string
  /** Label selector of the agents' pods. */
  readonly agentPodSelector: string
  /** Of Skyhooks that name no budget. */
  readonly defaultBudget: Budget
  /** Discovered by the agent at its start; false if its settings say that nothing of NodeWright counts. */
  readonly isNodeWrightServed?: boolean
}

export const defaultAgentPodSelector = 'app.kubernetes.io/name=skyhookd'

export type CensusLine =
  | {
      readonly kind: 'log'
      readonly level: 'debug' | 'info' | 'warn' | 'error'
      readonly message: string
      readonly fields: Readonly<Record<string, unknown>>
    }
  /** Requests since the last such line. */
  | {
      readonly kind: 'requests'
      readonly counts: readonly { readonly verb: string; readonly code: number; readonly count: number }[]
    }
  /** The number of agents, and a sign of life. */
  | {
      readonly kind: 'heartbeat'
      /** Time since the census last saw everything that it counts: 0 while it does; absent before the first time. */
      readonly uncountedMs?: number
      readonly agents: number | undefined
    }
  | SeriesLine

/** The current series of the subject; absent: it has none. */
export type SeriesLine = {
  readonly kind: 'series'
  /** Name of a Skyhook, or `clusterSubject`. */
  readonly subject: string
  readonly series?: FleetSeries
}

/** Not a valid name of a Skyhook. */
export const clusterSubject = ''

/** Settings from the agent's first line. Throws if it has none. */
export function readCensusSettings(line: string): CensusSettings {
  const settings = parseJson(line)
  if (!isObject(settings)) throw new Error('the settings of the census are not valid JSON')
  if (settings['v'] !== 1) throw new Error('the census was started by an agent of another version')
  for (const key of ['version', 'nodeName', 'podName', 'namespace', 'agentPodSelector'] as const) {
    if (typeof settings[key] !== 'string') throw new Error(`the settings of the census lack ${key}`)
  }
  if (!isObject(settings['defaultBudget'])) throw new Error('the settings of the census lack defaultBudget')
  return settings as CensusSettings & JsonObject
}

/** A line of the child's stdout; undefined for anything else, such as a warning of the runtime. */
export function readCensusLine(line: string): CensusLine | undefined {
  const value = parseJson(line) as CensusLine | null | undefined
  return value !== null && value !== undefined && kinds.has(value.kind) ? value : undefined
}

const kinds: ReadonlySet<string> = new Set<CensusLine['kind']>(['log', 'requests', 'heartbeat', 'series'])
