/** Where a step's files are on the host. */
import { type HostRoot, unlessMissing } from './root.ts'
import type { Units } from './units.ts'

export type StepHost = {
  readonly units: Units
  readonly root: HostRoot
  /** The agent's folder on the host, `/var/lib/skyhook/.agent`. */
  readonly agentFolder?: string
  /** Where secrets may lie until the next boot, `/run/skyhook`. */
  readonly runFolder?: string
}

export type StepFiles = {
  readonly runFolder: string
  readonly resultsFolder: string
  readonly recorder: string
  readonly record: string
  readonly environment: string
}

const ENVIRONMENT_SUFFIX = '.env'

/** Throws on an id that cannot be the name of a file. */
export function stepFiles({ agentFolder = '/var/lib/skyhook/.agent', runFolder = '/run/skyhook' }: StepHost, id: string): StepFiles {
  if (!/^[a-z0-9-]{1,128}$/.test(id)) throw new Error(`${JSON.stringify(id)} is not the id of an attempt`)
  const resultsFolder = `${agentFolder}/results`
  return {
    runFolder,
    resultsFolder,
    recorder: `${agentFolder}/record-result`,
    record: `${resultsFolder}/${id}`,
    environment: `${runFolder}/${id}${ENVIRONMENT_SUFFIX}`,
  }
}

/**
 * Removes records and environment files of all attempts but those of `keep`: the ones that run or whose result is not yet
 * on record elsewhere.
 */
export async function sweepStepFiles(host: StepHost, keep: ReadonlySet<string>): Promise<void> {
  const { resultsFolder, runFolder } = stepFiles(host, 'any')
  const keptEnvironments = new Set([...keep].map((id) => `${id}${ENVIRONMENT_SUFFIX}`))
  for (const name of (await host.root.readdir(resultsFolder).catch(unlessMissing)) ?? []) {
    if (!keep.has(name)) await host.root.remove(`${resultsFolder}/${name}`)
  }
  for (const name of (await host.root.readdir(runFolder).catch(unlessMissing)) ?? []) {
    const isEnvironment = name.includes(ENVIRONMENT_SUFFIX) // temporary ones that a crash left behind too
    if (isEnvironment && !keptEnvironments.has(name)) await host.root.remove(`${runFolder}/${name}`)
  }
}
