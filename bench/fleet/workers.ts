/** The processes that the agents of a measured fleet are divided among. They end with this one. */
import { fork, type ChildProcess } from 'node:child_process'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command, Reply, WorkerReport, WorkerTask } from './messages.ts'

export type Workers = {
  /** Registers all nodes and starts their agents. */
  start(tasks: readonly WorkerTask[], onStarted: (agents: number) => void): Promise<void>
  /** Counts from 0 again; resolves once the workers do. */
  mark(awaited: readonly string[], sinceMs: number): Promise<void>
  /** Resolves when so many nodes have completed since the last mark, with the times; rejects after `timeoutMs`. */
  completed(nodes: number, timeoutMs: number, onCompleted: (nodes: number) => void): Promise<readonly number[]>
  /** Kills all agents and starts them again; resolves once all are synced. */
  restart(): Promise<void>
  report(): Promise<readonly WorkerReport[]>
  startProfiles(): Promise<void>
  /** Writes `agents-0.cpuprofile` and so on into the folder. */
  writeProfiles(dir: string): Promise<void>
  stop(): void
}

/** Simulated disks, and what many agents read. */
const heapMiB = 8_192
/** In a cluster, agents do not take their time from the API server. */
const workerNiceness = 10

export function createWorkers(count: number): Workers {
  const file = fileURLToPath(new URL('./worker.ts', import.meta.url))
  const children = Array.from({ length: count }, () => fork(file, { execArgv: [`--max-old-space-size=${heapMiB}`] }))
  for (const { pid = 0 } of children) setPriority(pid, workerNiceness)
  let onReply = (_reply: Reply, _child: ChildProcess): void => undefined
  let completedAtMs: number[] = []
  let onCompleted = (): void => undefined
  for (const child of children)
    child.on('message', (reply: Reply) => {
      if (reply.type === 'completed') {
        completedAtMs.push(reply.atMs)
        onCompleted()
      }
      onReply(reply, child)
    })

  /** Sends each worker its command and resolves when all have done it. */
  async function tell(
    commandOf: (index: number) => Command,
    onProgress: (started: number) => void = () => undefined,
  ): Promise<readonly WorkerReport[]> {
    const reports: WorkerReport[] = []
    const started = new Map<ChildProcess, number>()
    const open = new Set(children)
    const done = Promise.withResolvers<void>()
    const fail = (): void => done.reject(new Error('a worker has died'))
    for (const child of children) child.once('exit', fail)
    onReply = (reply, child) => {
      if (reply.type === 'failed') done.reject(new Error(reply.why))
      if (reply.type === 'started') {
        started.set(child, reply.agents)
        onProgress([...started.values()].reduce((sum, one) => sum + one, 0))
      }
      if (reply.type !== 'done') return
      if (reply.report) reports.push(reply.report)
      open.delete(child)
      if (open.size === 0) done.resolve()
    }
    for (const [index, child] of children.entries()) child.send(commandOf(index))
    await done.promise
    for (const child of children) child.off('exit', fail)
    return reports
  }

  return {
    async start(tasks, onStarted) {
      await tell((index) => ({ do: 'start', task: tasks[index] as WorkerTask }), onStarted)
    },
    async mark(awaited, sinceMs) {
      completedAtMs = []
      await tell(() => ({ do: 'mark', awaited, sinceMs }))
    },
    async completed(nodes, timeoutMs, report) {
      const reached = Promise.withResolvers<void>()
      const timer = setTimeout(() => {
        reached.reject(new Error(`${completedAtMs.length} of ${nodes} nodes completed in ${timeoutMs / 1000} s`))
      }, timeoutMs)
      onCompleted = () => {
        report(completedAtMs.length)
        if (completedAtMs.length >= nodes) reached.resolve()
      }
      onCompleted()
      try {
        await reached.promise
      } finally {
        clearTimeout(timer)
      }
      return completedAtMs.toSorted((a, b) => a - b)
    },
    restart: async () => void (await tell(() => ({ do: 'restart' }))),
    report: async () => await tell(() => ({ do: 'report' })),
    startProfiles: async () => void (await tell(() => ({ do: 'start-profile' }))),
    writeProfiles: async (dir) =>
      void (await tell((index) => ({ do: 'write-profile', file: join(dir, `agents-${index}.cpuprofile`) }))),
    stop() {
      for (const child of children) child.disconnect()
    },
  }
}
