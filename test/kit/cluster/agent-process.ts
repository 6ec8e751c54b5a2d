/** The agent's process on one node, and the commands it obeys at its failpoints (failpoint-commands.ts). */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { cgroupOf, type Sandbox } from '../../sandbox/sandbox.ts'

/**
 * In the kubelet's folder: it belongs to this machine, so no power cut takes it and writing it syncs nothing of the
 * host.
 */
export const commandsFile = '/var/lib/kubelet/failpoint-commands'

export type AgentProcess = {
  /** From the next passage on. `none` only has the passages written down. */
  setFailpoint(run: number, action: 'kill' | 'stop' | 'none', point: string): void
  /** It was killed or stopped at its point. */
  readonly hasHitPoint: boolean
  /** Passages of a run so far, in order. */
  passed(run: number): string[]
  /** After a stop. Nothing happens when it is dead. */
  resume(): void
  /** Takes back what was not carried out. */
  clearFailpoint(): void
}

export function agentProcess(box: Sandbox, node: string): AgentProcess {
  const file = join(box.folder, 'hosts', node, 'kubelet', basename(commandsFile))
  return {
    setFailpoint(run, action, point) {
      writeFileSync(`${file}.new`, `${run} ${action} ${point}\n`)
      renameSync(`${file}.new`, file)
    },
    get hasHitPoint() {
      return existsSync(`${file}.done`)
    },
    passed(run) {
      const lines = existsSync(`${file}.passed`) ? readFileSync(`${file}.passed`, 'utf8').split('\n') : []
      return lines.filter((line) => line.startsWith(`${run} `)).map((line) => line.slice(`${run} `.length))
    },
    resume() {
      for (const pid of processesOf(box, node, agentCommand)) process.kill(pid, 'SIGCONT')
    },
    clearFailpoint() {
      for (const suffix of ['', '.done', '.passed']) rmSync(`${file}${suffix}`, { force: true })
    },
  }
}

/** Command lines have a zero byte after each argument. */
export const agentCommand = /skyhookd\.cjs\0agent\0/
export const censusCommand = /skyhookd\.cjs\0census\0/

/**
 * The processes of a host with such a command line, by their ids on this machine; bin/sandbox keeps a host in a cgroup
 * of that name.
 */
export function processesOf(box: Sandbox, node: string, command: RegExp): number[] {
  const group = `${cgroupOf(box)}/hosts/${node}`
  return processesIn(group).filter((pid) => command.test(readIfExists(`/proc/${pid}/cmdline`)))
}

/** Of a control group and those below it, any of which may end meanwhile: a recursive `readdir` would fail then. */
function processesIn(group: string): number[] {
  const own = readIfExists(join(group, 'cgroup.procs')).split('\n').filter(Boolean).map(Number)
  return [...own, ...foldersIn(group).flatMap((name) => processesIn(join(group, name)))]
}

function foldersIn(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
  } catch {
    return [] // ended meanwhile
  }
}

function readIfExists(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // ended meanwhile
  }
}

/** Polls: the file system of another host sends no news. False when the time is over. */
export async function waitUntil(
  timeoutMs: number,
  condition: () => boolean | Promise<boolean>,
  pollMs = 25,
): Promise<boolean> {
  for (const endMs = Date.now() + timeoutMs; Date.now() < endMs; await sleep(pollMs)) if (await condition()) return true
  return await condition()
}
