/** A process with some of the agents of a measured fleet; `workers.ts` starts it. */
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { createKubeTransport } from '../../src/kube/transport.ts'
import { staticCredentials } from '../../test/kit/tool/static-credentials.ts'
import { memoryOf } from '../memory.ts'
import { startCpuProfile, writeCpuProfile } from './cpu-profile.ts'
import { createFleetNode, type FleetNode } from './fleet-node.ts'
import type { Command, Reply, WorkerReport, WorkerTask } from './messages.ts'

/** So many nodes are registered at once, and their agents started. */
const maxStarting = 8

const nodes: FleetNode[] = []
let watchEvents = 0
let watchBytes = 0
let outs: WorkerReport['outs'][number][] = []
const warnings = new Map<string, number>()

const say = (reply: Reply): void => void process.send?.(reply)

async function start(task: WorkerTask): Promise<void> {
  const { server, ca, cert, key, firstNode } = task
  const credentials = staticCredentials({ server, ca, cert, key })
  const admin = createKubeTransport({ credentials, version: 'bench', clock: systemClock, rate: false })
  let next = 0
  const startOnes = async (): Promise<void> => {
    while (next < task.nodes) {
      const node = await createFleetNode(firstNode + next++, task, admin, {
        watched(events, bytes) {
          watchEvents += events
          watchBytes += bytes
        },
        completed: (name, atMs) => say({ type: 'completed', node: name, atMs }),
        wentOut: (change, atMs) => void outs.push({ atMs, change }),
        warned: (message) => void warnings.set(message, (warnings.get(message) ?? 0) + 1),
      })
      nodes.push(node)
      say({ type: 'started', agents: nodes.length })
    }
  }
  await Promise.all(Array.from({ length: maxStarting }, startOnes))
}

function mark(awaited: readonly string[], sinceMs: number): void {
  watchEvents = watchBytes = 0
  outs = []
  warnings.clear()
  for (const { conduct } of nodes) conduct.mark(awaited, sinceMs)
}

function report(): WorkerReport {
  const nowMs = Date.now()
  const { user, system } = process.cpuUsage()
  return {
    watchEvents,
    watchBytes,
    outs,
    silentMs: nodes.map(({ conduct }) => conduct.silentMs(nowMs)),
    warnings: Object.fromEntries(warnings),
    rssMiB: memoryOf('self').rssMiB,
    cpuMs: (user + system) / 1000,
  }
}

async function obey(command: Command): Promise<Reply> {
  switch (command.do) {
    case 'start':
      await start(command.task)
      break
    case 'mark':
      mark(command.awaited, command.sinceMs)
      break
    case 'restart':
      await Promise.all(nodes.map(async (node) => await node.restart()))
      break
    case 'start-profile':
      await startCpuProfile()
      break
    case 'write-profile':
      await writeCpuProfile(command.file)
      break
    case 'report':
      return { type: 'done', report: report() }
  }
  return { type: 'done' }
}

process.on('message', (command: Command) => {
  obey(command).then(say, (error: unknown) =>
    say({ type: 'failed', why: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
