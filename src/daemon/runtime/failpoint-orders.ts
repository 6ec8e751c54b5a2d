/**
 * What tests order at crash points (src/host/fs/failpoint.ts). In ordinary life there is no order, and nothing here
 * does anything.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { KubeTransport } from '../../kube/transport.ts'

/**
 * Passages are counted by name, from 1: `fsync:journal#3` is the third.
 *
 * `SKYHOOKD_FAILPOINT=name#n` kills the agent there with SIGKILL, once in the life of the host.
 * `SKYHOOKD_FAILPOINT=@FILE` takes orders from a file of the host, as long as the agent runs: one line `RUN
 * kill|stop|none name#n`, where `stop` means SIGSTOP. Another run, another count. The file is renamed to FILE.done when
 * it is carried out, and every passage of a run is a line `RUN name#n` of FILE.passed; an agent that is started again
 * in the middle of a run goes on counting there. `SKYHOOKD_FAILPOINT_RECORD=FILE` appends every passage to that file of
 * the host.
 * /
 */
export type Failpoints = { hit(name: string): void }

type TerminationSignal = 'SIGKILL' | 'SIGSTOP'
export type SignalSelf = (signal: TerminationSignal) => void
const signalSelf: SignalSelf = (signal) => process.kill(process.pid, signal)

/** Undefined in ordinary life. `copyDirRoot` is where the mark of the one kill is kept. */
export function createFailpoints(
  env: NodeJS.ProcessEnv,
  hostRoot: string,
  copyDirRoot: string,
  sendSignal = signalSelf,
): Failpoints | undefined {
  const at = env['SKYHOOKD_FAILPOINT']
  const recordPath = env['SKYHOOKD_FAILPOINT_RECORD']
  const handlers = [
    ...(recordPath ? [recordHits(`${hostRoot}${recordPath}`)] : []),
    ...(at?.startsWith('@') ? [readFailpointFile(`${hostRoot}${at.slice(1)}`, sendSignal)] : []),
    ...(at && !at.startsWith('@') ? [killOnce(at, `${hostRoot}${copyDirRoot}/.agent`, sendSignal)] : []),
  ]
  return handlers.length === 0 ? undefined : { hit: (name) => handlers.forEach((failpoints) => failpoints.hit(name)) }
}

function recordHits(file: string): Failpoints {
  const counts = createHitCounter()
  return { hit: (name) => appendFileSync(file, `${counts.next(name)}\n`) }
}

/** The mark on the disk of the host outlives the agent, which dies once and not at each of its starts. */
function killOnce(at: string, folder: string, sendSignal: SignalSelf): Failpoints {
  const markerFile = `${folder}/crashed-at-${at.replaceAll(/[^A-Za-z0-9#.-]/g, '_')}`
  const counts = createHitCounter()
  const isArmed = !existsSync(markerFile)
  return {
    hit(name) {
      if (counts.next(name) !== at || !isArmed) return
      mkdirSync(dirname(markerFile), { recursive: true })
      writeFileSync(markerFile, '')
      sendSignal('SIGKILL')
    },
  }
}

function readFailpointFile(file: string, sendSignal: SignalSelf): Failpoints {
  let current = ''
  let counts = createHitCounter()
  return {
    hit(name) {
      const line = readCommand(file)
      if (line !== undefined && line !== current) {
        current = line
        const [run = ''] = line.split(' ')
        counts = createHitCounter(recordedHits(`${file}.passed`, run)) // an agent that came back goes on counting
      }
      if (current === '') return
      const [run = '', action, at] = current.split(' ')
      const hitId = counts.next(name)
      appendFileSync(`${file}.passed`, `${run} ${hitId}\n`)
      if (line === undefined || hitId !== at || action === 'none') return
      renameSync(file, `${file}.done`)
      sendSignal(action === 'stop' ? 'SIGSTOP' : 'SIGKILL')
    },
  }
}

function readCommand(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return undefined
  }
}

function recordedHits(file: string, run: string): string[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
  return lines.filter((line) => line.startsWith(`${run} `)).map((line) => line.slice(run.length + 1))
}

function createHitCounter(hits: readonly string[] = []): { next(name: string): string } {
  const counts = new Map<string, number>()
  for (const hitId of hits)
    counts.set(hitId.slice(0, hitId.lastIndexOf('#')), Number(hitId.slice(hitId.lastIndexOf('#') + 1)))
  return {
    next(name) {
      const count = (counts.get(name) ?? 0) + 1
      counts.set(name, count)
      return `${name}#${count}`
    },
  }
}

/** Tells of acknowledged writes by verb and resource. Events are left out: nothing waits for them. */
export function failpointTransport(transport: KubeTransport, hit: (name: string) => void): KubeTransport {
  return {
    ...transport,
    async json(method, path, options) {
      const answer = await transport.json(method, path, options)
      const resource = resourceOf(path)
      if (method !== 'GET' && resource !== 'events') hit(`api:${method}-${resource}`)
      return answer as never
    },
  }
}

/** `nodes/status` of `/api/v1/nodes/n/status`, `leases` of `/apis/…/namespaces/x/leases/y`. */
function resourceOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '')
  const start = parts[0] === 'api' ? 2 : 3
  const rest = parts[start] === 'namespaces' && parts.length > start + 2 ? parts.slice(start + 2) : parts.slice(start)
  const [resource = '', , subresource] = rest
  return subresource === undefined ? resource : `${resource}/${subresource}`
}
