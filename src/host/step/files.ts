/** Where a step's files are on the host. */
import type { HostRoot } from '../fs/host-root.ts'
import { agentFolder } from '../fs/journal-file.ts'
import type { Units } from '../systemd/units.ts'

export type StepHost = {
  readonly units: Units
  readonly root: HostRoot
  /** The folder for secrets until the next boot, `/run/skyhook`. */
  readonly runFolder?: string
}

export type StepFiles = {
  readonly runFolder: string
  readonly resultsFolder: string
  readonly recorder: string
  readonly record: string
  readonly environment: string
  readonly note: string
  /** How much of the step's output is in an agent's log. */
  readonly printed: string
}

const environmentSuffix = '.env'
const noteSuffix = '.note'
const printedSuffix = '.printed'

/** Throws on an id that cannot be the name of a file. */
export function stepFiles({ runFolder = '/run/skyhook' }: StepHost, id: string): StepFiles {
  if (!/^[a-z0-9-]{1,128}$/.test(id)) throw new Error(`${JSON.stringify(id)} is not the id of an attempt`)
  const resultsFolder = `${agentFolder}/results`
  return {
    runFolder,
    resultsFolder,
    recorder: `${agentFolder}/record-result`,
    record: `${resultsFolder}/${id}`,
    environment: `${runFolder}/${id}${environmentSuffix}`,
    note: `${runFolder}/${id}${noteSuffix}`,
    printed: `${runFolder}/${id}${printedSuffix}`,
  }
}

/**
 * The note of the start of the attempt, by this agent or the previous one; undefined after its removal, and after a
 * reboot.
 */
export async function readStepNote(host: StepHost, id: string): Promise<string | undefined> {
  return await host.root.readText(stepFiles(host, id).note)
}

/**
 * Removes records, environment files and notes of all attempts but those of `keep`: attempts that run or whose result
 * is not yet recorded elsewhere.
 */
export async function sweepStepFiles(host: StepHost, keep: ReadonlySet<string>): Promise<void> {
  const { resultsFolder, runFolder } = stepFiles(host, 'any')
  const suffixes = [environmentSuffix, noteSuffix, printedSuffix]
  const keptNames = new Set([...keep].flatMap((id) => suffixes.map((suffix) => `${id}${suffix}`)))
  for (const name of (await host.root.list(resultsFolder)) ?? []) {
    if (!keep.has(name)) await host.root.remove(`${resultsFolder}/${name}`)
  }
  for (const name of (await host.root.list(runFolder)) ?? []) {
    const isOurs = suffixes.some((suffix) => name.includes(suffix)) // also temporary files left by a crash
    if (isOurs && !keptNames.has(name)) await host.root.remove(`${runFolder}/${name}`)
  }
}
