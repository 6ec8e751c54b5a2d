import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { ImageError, systemCode } from '../oci/errors.ts'
import type { ImageErrorCode } from '../../schemas/catalogue/reason-codes.ts'
import type { RegistryPorts } from '../oci/read/registry.ts'
import type { UnpackSummary } from './unpack.ts'
import { startInterval } from '../../schemas/clock.ts'
import type { UnpackJob } from './unpack-job.ts'
import { messageOf } from '../../schemas/json.ts'

/**
 * Fetches and unpacks in a separate process. Node never returns the memory for it (10 MB for a download, 100 for an
 * archive), so the agent must not allocate it. A broken archive also cannot crash the agent.
 *
 * Each side sends one line of JSON through a pipe, because it contains logins. The pipe of the job stays open: if it
 * closes, the agent is dead, and the child exits too.
 */
type Reply =
  | { readonly outcome: 'unpacked'; readonly unpacked: UnpackSummary }
  | {
      readonly outcome: 'refused'
      readonly code: ImageErrorCode
      readonly message: string
      readonly retryAfterMs?: number | undefined
    }
  | { readonly outcome: 'failed'; readonly errno: string | undefined; readonly message: string }

const oomScoreAdj = '900' // when out of memory, the kernel kills the child, not the agent
/**
 * The child ends before the container is out of memory, because the kernel may then kill the whole container. A package
 * of 40 MB takes 86 MiB (bench/unpacking.ts); 50 MiB of these are pages of the program, which the agent has anyway.
 */
const maxRssMiB = 144
const rssSampleMs = 50
const orphanedExitCode = 75

/** Entry point of the child. Ends the process. */
export async function runUnpackChild(ports: RegistryPorts): Promise<void> {
  process.umask(0o022)
  try {
    writeFileSync('/proc/self/oom_score_adj', oomScoreAdj)
  } catch {
    // best effort: unpacking works without /proc, too
  }
  const lines = createInterface({ input: process.stdin })
  lines.on('close', () => process.exit(orphanedExitCode))
  const job = await new Promise<UnpackJob>((resolve) =>
    lines.once('line', (line) => resolve(JSON.parse(line) as UnpackJob)),
  )
  let isAnswered = false
  const answer = (reply: Reply): void => {
    if (isAnswered) return
    isAnswered = true
    process.stdout.write(`${JSON.stringify(reply)}\n`, () => process.exit(0))
  }
  const parentPeakKiB = process.resourceUsage().maxRSS
  startInterval(ports.clock, rssSampleMs, () => {
    if (memoryKiB(parentPeakKiB) > maxRssMiB * 1024) answer(failureReply(outOfMemory()))
  })
  // only the child loads the modules for archives and compression, never the agent
  const { runUnpackJob } = await import('./unpack-job.ts')
  answer(
    await runUnpackJob(job, ports, new AbortController().signal).then(
      (unpacked): Reply => ({ outcome: 'unpacked', unpacked }),
      failureReply,
    ),
  )
}

/**
 * The peak memory of this process, in KiB. The kernel starts its count with the peak of the parent (`parentPeakKiB`).
 * Up to that value, the current memory is returned.
 */
function memoryKiB(parentPeakKiB: number): number {
  const { maxRSS } = process.resourceUsage()
  if (maxRSS > parentPeakKiB) return maxRSS
  try {
    return process.memoryUsage.rss() / 1024
  } catch {
    return 0 // no /proc
  }
}

const outOfMemory = (): ImageError =>
  new ImageError(
    'too-large',
    `unpacking takes more than ${maxRssMiB} MiB of memory; ` +
      'build the image with a zstd window of at most 8 MiB, or with gzip',
  )

function failureReply(error: unknown): Reply {
  if (error instanceof ImageError)
    return { outcome: 'refused', code: error.code, message: error.message, retryAfterMs: error.retryAfterMs }
  return { outcome: 'failed', errno: systemCode(error), message: messageOf(error) }
}

export type UnpackOptions = {
  /** An abort kills the child with all its descendants. */
  readonly signal: AbortSignal
  /** Program and arguments of the child; by default this program as `unpack`; tests that run from source set it. */
  readonly command?: readonly [string, ...string[]]
}

const maxStderrChars = 2_000

/** Runs {@link runUnpackJob} in a child, with the same errors. */
export async function unpackInChild(
  job: UnpackJob,
  { signal, command = unpackCommand() }: UnpackOptions,
): Promise<UnpackSummary> {
  signal.throwIfAborted()
  const [program, ...parameters] = command
  const child = spawn(program, parameters, { detached: true, env: {}, stdio: ['pipe', 'pipe', 'pipe'] })
  let replyText = ''
  let stderrTail = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (replyText += text))
  child.stderr
    .setEncoding('utf8')
    .on('data', (text: string) => (stderrTail = `${stderrTail}${text}`.slice(-maxStderrChars)))
  child.stdin.on('error', () => undefined) // the child may die before it reads; its exit status reports that
  child.stdin.write(`${JSON.stringify(job)}\n`)

  const kill = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // the child has ended
    }
  }
  signal.addEventListener('abort', kill, { once: true })
  try {
    const exitStatus = await new Promise<string>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code, name) => resolve(name ?? `exit ${code}`))
    })
    signal.throwIfAborted()
    return readReply(replyText, exitStatus, stderrTail)
  } finally {
    signal.removeEventListener('abort', kill)
  }
}

function readReply(replyText: string, exitStatus: string, stderrTail: string): UnpackSummary {
  if (!replyText.endsWith('\n'))
    throw new Error(
      `the unpacking process ended without an answer (${exitStatus}): ${stderrTail.trim() || 'out of memory?'}`,
    )
  const reply = JSON.parse(replyText) as Reply
  switch (reply.outcome) {
    case 'unpacked':
      return reply.unpacked
    case 'refused':
      throw new ImageError(reply.code, reply.message, { retryAfterMs: reply.retryAfterMs })
    case 'failed':
      throw Object.assign(new Error(reply.message), { code: reply.errno })
  }
}

function unpackCommand(): [string, ...string[]] {
  return [process.execPath, ...process.execArgv, process.argv[1] ?? '', 'unpack']
}
