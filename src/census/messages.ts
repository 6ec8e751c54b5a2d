/**
 * What an agent and the census that it runs as a child say to each other: JSON lines. The agent sends its settings as
 * the first line of the child's stdin and then holds that stdin open: when it closes, for whatever reason, the child
 * ends.
 */
export type CensusSettings = {
  readonly v: 1
  readonly version: string
  readonly nodeName: string
  /** A list of pods that does not contain this one is not believed. */
  readonly podName: string
  readonly namespace: string
  /** Label selector of the agents' pods. */
  readonly agentPodSelector: string
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
  /** What is known of the fleet; also the sign of life. Fleet metrics come here. */
  | {
      readonly kind: 'heartbeat'
      readonly nodes: number
      readonly agents: number | undefined
      readonly skyhooks: number
      readonly rssBytes: number
    }

/** Settings from the agent's first line. Throws a sentence when it is none. */
export function readCensusSettings(line: string): CensusSettings {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (error) {
    throw new Error('the settings of the census are not valid JSON', { cause: error })
  }
  const settings = value as Partial<Record<keyof CensusSettings, unknown>> | null
  if (settings?.v !== 1) throw new Error('the census was started by an agent of another version')
  for (const key of ['version', 'nodeName', 'podName', 'namespace', 'agentPodSelector'] as const) {
    if (typeof settings[key] !== 'string') throw new Error(`the settings of the census lack ${key}`)
  }
  return settings as CensusSettings
}

/** One line of the child's stdout; undefined for what is none, such as a warning of the runtime. */
export function readCensusLine(line: string): CensusLine | undefined {
  try {
    const value = JSON.parse(line) as { kind?: unknown } | null
    return value?.kind === 'log' || value?.kind === 'requests' || value?.kind === 'heartbeat'
      ? (value as CensusLine)
      : undefined
  } catch {
    return undefined
  }
}
