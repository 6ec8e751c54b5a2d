import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { ImageError, type ImageErrorCode, systemCode } from '../oci/errors.ts'
import type { Unpacked } from './unpack.ts'
import type { UnpackJob } from './unpack-job.ts'

/**
 * Fetching and unpacking in a process of its own: memory that Node takes for it is never given back (10 MB for a download, 100 for an
 * archive), so the agent must not be the one to take it; and what breaks on a broken archive is not the agent.
 *
 * One line of JSON each way, through pipes: logins are in it. The job's pipe stays open: when it closes, the agent is gone, and the
 * child goes too.
 */
type Reply =
  | { readonly outcome: 'unpacked'; readonly unpacked: Unpacked }
  | { readonly outcome: 'refused'; readonly code: ImageErrorCode; readonly message: string; readonly retryAfterMs?: number | undefined }
  | { readonly outcome: 'failed'; readonly errno: string | undefined; readonly message: string }

const PREFERRED_VICTIM = '900' // out of memory, the kernel shall take the child and leave the agent
const EXIT_ORPHANED = 75

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
  const job = await new Promise<UnpackJob>((resolve) => lines.once('line', (line) => resolve(JSON.parse(line) as UnpackJob)))
  const { runUnpackJob } = await import('./unpack-job.ts') // archives and compression are the child's alone: no agent loads them
  const reply = await runUnpackJob(job, new AbortController().signal).then(
    (unpacked): Reply => ({ outcome: 'unpacked', unpacked }),
    failure,
  )
  process.stdout.write(`${JSON.stringify(reply)}\n`, () => process.exit(0))
}

function failure(error: unknown): Reply {
  if (error instanceof ImageError) return { outcome: 'refused', code: error.code, message: error.message, retryAfterMs: error.retryAfterMs }
  return { outcome: 'failed', errno: systemCode(error), message: error instanceof Error ? error.message : String(error) }
}

export type UnpackOptions = {
  /** Aborting it kills the child with all its descendants. */
  readonly signal: AbortSignal
  /** Program and arguments of the child; this very program as `unpack` unless a test runs from source. */
  readonly command?: readonly [string, ...string[]]
}

const MAX_COMPLAINT_CHARS = 2_000

/** {@link runUnpackJob} in a child, with the same errors. */
export async function unpackInChild(job: UnpackJob, { signal, command = ownCommand() }: UnpackOptions): Promise<Unpacked> {
  signal.throwIfAborted()
  const [program, ...parameters] = command
  const child = spawn(program, parameters, { detached: true, env: {}, stdio: ['pipe', 'pipe', 'pipe'] })
  let answer = ''
  let complaint = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (answer += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint = `${complaint}${text}`.slice(-MAX_COMPLAINT_CHARS)))
  child.stdin.on('error', () => undefined) // it may be dead before it listens; its exit says so
  child.stdin.write(`${JSON.stringify(job)}\n`)

  const kill = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // gone in the meantime
    }
  }
  signal.addEventListener('abort', kill, { once: true })
  try {
    const ended = await new Promise<string>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code, name) => resolve(name ?? `exit ${code}`))
    })
    signal.throwIfAborted()
    return readReply(answer, ended, complaint)
  } finally {
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
      throw new ImageError(reply.code, reply.message, { retryAfterMs: reply.retryAfterMs })
    case 'failed':
      throw Object.assign(new Error(reply.message), { code: reply.errno })
  }
}

function ownCommand(): [string, ...string[]] {
  return [process.execPath, ...process.execArgv, process.argv[1] ?? '', 'unpack']
}
