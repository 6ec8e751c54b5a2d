/** What the actions of a campaign work on: the sandbox, the administrator's API server, and who is busy with what. */
import type { KubeTransport } from '../../src/kube/transport.ts'
import { patch } from '../kit/cluster/kube.ts'
import { processesOf } from '../kit/cluster/agent-process.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { History } from '../kit/history.ts'
import type { Deletion } from '../kit/recorded/evidence.ts'

/** One fault or edit that was carried out, or failed to find its object. */
export type ActionRecord = {
  readonly number: number
  readonly kind: string
  readonly startedMs: number
  endedMs: number
  /** What it did to whom. */
  detail: string
  hasMissed: boolean
}

export type Arena = {
  readonly box: Sandbox
  /** The API server that no fault hits. */
  readonly api: KubeTransport
  readonly history: History
  readonly registry: string
  readonly nodes: readonly string[]
  /** Hosts, components and lasting edits: another action on one of them would end it too early. */
  readonly busy: Set<string>
  /** Versions of Nodes that the administrator wrote. */
  readonly ownVersions: Set<number>
  readonly registerDeletion: (deletion: Deletion) => void
}

/** An action that found nothing to work on. */
export class Missed extends Error {}

/** Takes one of the free ones for the time of the task. */
export async function withFree<T>(
  { busy }: Arena,
  candidates: readonly string[],
  target: number,
  task: (name: string) => Promise<T>,
): Promise<T> {
  const free = candidates.filter((name) => !busy.has(name))
  const chosen = free[Math.floor(target * free.length)]
  if (chosen === undefined) throw new Missed(`all of ${candidates.join(', ') || 'nothing'} are busy`)
  busy.add(chosen)
  try {
    return await task(chosen)
  } finally {
    busy.delete(chosen)
  }
}

/** SIGKILL, as the kernel sends it when memory runs out. */
export function killProcesses({ box }: Arena, node: string, command: RegExp): void {
  const processes = processesOf(box, node, command)
  if (processes.length === 0) throw new Missed(`no such process on ${node}`)
  for (const pid of processes) process.kill(pid, 'SIGKILL')
}

/** A merge patch of the administrator. */
export async function write<T extends { metadata: { resourceVersion: string } }>(
  { api, ownVersions }: Arena,
  path: string,
  body: object,
): Promise<T> {
  const written = await patch<T>(api, path, body)
  ownVersions.add(Number(written.metadata.resourceVersion))
  return written
}
