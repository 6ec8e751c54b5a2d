/**
 * What the fault campaign tells an agent to do at its failpoints (src/host/fs/failpoint.ts): one file that the agent
 * reads as long as it runs, with the line `RUN kill|stop|none NAME#N`. Passages of a name are counted from 1:
 * `fsync:journal#3` is the third. `stop` means SIGSTOP. Another run starts another count.
 *
 * The file is renamed to FILE.done when its command is carried out. Every passage of a run is a line `RUN NAME#N` of
 * FILE.passed; an agent that is started again in the middle of a run continues the count there.
 */
import { appendFileSync, existsSync, readFileSync, renameSync } from 'node:fs'

export type SignalSelf = (signal: 'SIGKILL' | 'SIGSTOP') => void

/** Returns the listener for the agent's failpoints. */
export function followCommands(file: string, signalSelf: SignalSelf): (name: string) => void {
  let current = ''
  let counts = new Map<string, number>()
  return (name) => {
    const line = readCommand(file)
    if (line !== undefined && line !== current) {
      current = line
      const [run = ''] = line.split(' ')
      counts = recordedCounts(`${file}.passed`, run)
    }
    if (current === '') return
    const [run = '', action, at] = current.split(' ')
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    const passage = `${name}#${count}`
    appendFileSync(`${file}.passed`, `${run} ${passage}\n`)
    if (line === undefined || passage !== at || action === 'none') return
    renameSync(file, `${file}.done`)
    signalSelf(action === 'stop' ? 'SIGSTOP' : 'SIGKILL')
  }
}

function readCommand(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return undefined
  }
}

/** What an agent that died in this run had counted. */
function recordedCounts(file: string, run: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const line of existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []) {
    if (!line.startsWith(`${run} `)) continue
    const end = line.lastIndexOf('#')
    counts.set(line.slice(run.length + 1, end), Number(line.slice(end + 1)))
  }
  return counts
}
