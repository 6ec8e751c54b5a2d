/** What packages do on a host: each step writes when it begins and when it has succeeded. */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Sandbox } from '../../sandbox/sandbox.ts'

/** In the kubelet's folder, which is on this machine's disk: no power cut loses a line. */
export const stepsPath = '/var/lib/kubelet/recorded-steps'

/** One line: a step began, or its script came to its end. */
export type StepLine = {
  readonly atMs: number
  readonly skyhook: string
  readonly package: string
  readonly version: string
  readonly mode: string
  /** Of the edit that brought the script. */
  readonly round: string
  readonly what: 'begins' | 'ends'
}

/** The steps of a host so far, also while it is down. */
export function readSteps({ folder }: Sandbox, node: string): StepLine[] {
  return parseSteps(readIfExists(join(folder, 'hosts', node, 'kubelet', basename(stepsPath))))
}

export function parseSteps(text: string): StepLine[] {
  return text.split('\n').flatMap((line) => {
    const [at = '', skyhook = '', name = '', version = '', mode = '', round = '', what] = line.split(' ')
    if (what !== 'begins' && what !== 'ends') return [] // cut off by a power cut
    return [{ atMs: Number.parseFloat(at) * 1000, skyhook, package: name, version, mode, round, what }]
  })
}

function readIfExists(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
