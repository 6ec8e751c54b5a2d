import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { ImageError, type ImageErrorCode, imageErrorCode, systemCode } from './oci/errors.ts'
import { type Unpacked, unpackPackage, type UnpackRequest } from './unpack.ts'

/**
 * Unpacking in a process of its own: memory that Node takes for it is never given back, so the agent must not be the one to take it,
 * and an archive made to break its reader breaks a process that holds no login and no state.
 *
 * One line of JSON each way. The request's pipe stays open: when it closes, the agent is gone and so is the child.
 */
type Reply =
  | { readonly outcome: 'unpacked'; readonly unpacked: Unpacked }
  | { readonly outcome: 'refused'; readonly code: ImageErrorCode; readonly message: string }
  | { readonly outcome: 'failed'; readonly errno: string | undefined; readonly message: string }

const PREFERRED_VICTIM = '900' // out of memory, the kernel shall take the child and leave the agent

/** Entry point of the child. Ends the process. */
export async function runUnpackChild(): Promise<void> {
  process.umask(0o022)
  try {
    writeFileSync('/proc/self/oom_score_adj', PREFERRED_VICTIM)
  } catch {
    // a wish, not a condition: containers without /proc unpack too
  }
  const lines = createInterface({ input: process.stdin })
  lines.on('close', () => process.exit(EXIT_ORPHANED))
  const request = await new Promise<UnpackRequest>((resolve) => lines.once('line', (line) => resolve(JSON.parse(line) as UnpackRequest)))
  const reply = await unpackPackage(request).then(
    (unpacked): Reply => ({ outcome: 'unpacked', unpacked }),
    (error: unknown): Reply => {
      const message = error instanceof Error ? error.message : String(error)
      const code = imageErrorCode(error)
      return code === undefined ? { outcome: 'failed', errno: systemCode(error), message } : { outcome: 'refused', code, message }
    },
  )
  process.stdout.write(`${JSON.stringify(reply)}\n`, () => process.exit(0))
}

const EXIT_ORPHANED = 75

export type UnpackOptions = {
  readonly signal: AbortSignal
  /** Program and arguments of the child; this very program as `unpack` unless a test runs from source. */
  readonly command?: readonly [string, ...string[]]
  readonly timeoutMs?: number
}

const TIMEOUT_MS = 10 * 60_000 // a 4 GiB image on a slow disk
const MAX_COMPLAINT_CHARS = 2_000

/**
 * {@link unpackPackage} in a child; the same errors. A child that takes too long or that nobody waits for any more is killed with all
 * its descendants.
 */
export async function unpackInChild(
  request: UnpackRequest,
  { signal, command = ownCommand(), timeoutMs = TIMEOUT_MS }: UnpackOptions,
): Promise<Unpacked> {
  signal.throwIfAborted()
  const [program, ...parameters] = command
  const child = spawn(program, parameters, { detached: true, env: {}, stdio: ['pipe', 'pipe', 'pipe'] })
  let answer = ''
  let complaint = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (answer += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint = `${complaint}${text}`.slice(-MAX_COMPLAINT_CHARS)))
  child.stdin.on('error', () => undefined) // it may be dead before it listens; its exit says so
  child.stdin.write(`${JSON.stringify(request)}\n`)

  let timedOut = false
  const kill = () => {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // gone in the meantime
    }
  }
  const timer = setTimeout(() => {
    timedOut = true
    kill()
  }, timeoutMs)
  signal.addEventListener('abort', kill, { once: true })
  try {
    const ended = await new Promise<string>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code, name) => resolve(name ?? `exit ${code}`))
    })
    signal.throwIfAborted()
    if (timedOut) throw new ImageError('too-large', `unpacking took more than ${timeoutMs} ms`)
    return readReply(answer, ended, complaint)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', kill)
  }
}

function readReply(answer: string, ended: string, complaint: string): Unpacked {
  if (!answer.endsWith('\n'))
    throw new Error(`the unpacking process ended without an answer (${ended}): ${complaint.trim() || 'out of memory?'}`)
  const reply = JSON.parse(answer) as Reply
  switch (reply.outcome) {
    case 'unpacked':
      return reply.unpacked
    case 'refused':
      throw new ImageError(reply.code, reply.message)
    case 'failed':
      throw Object.assign(new Error(reply.message), { code: reply.errno })
  }
}

function ownCommand(): [string, ...string[]] {
  return [process.execPath, ...process.execArgv, process.argv[1] ?? '', 'unpack']
}
