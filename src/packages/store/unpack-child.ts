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
 * Fetching and unpacking in its own process: memory that Node takes for it is never given back (10 MB for a
 * download, 100 for an archive), so the agent must not be the one to take it; and what breaks on a broken archive is
 * not the agent.
 *
 * One line of JSON each way, through pipes: logins are in it. The job's pipe stays open: when it closes, the agent is
 * dead, and the child exits too.
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

const oomScoreAdj = '900' // out of memory, the kernel kills the child and spares the agent
/**
 * The child ends before the container is out of memory, because the kernel may then kill all of the container. 40 MB of
 * package take 86 MiB (bench/unpacking.ts), 50 of them pages of the program that the agent has anyway.
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
    // best effort: containers without /proc unpack too
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
  // archives and compression are the child's alone: no agent loads them
  const { runUnpackJob } = await import('./unpack-job.ts')
  answer(
    await runUnpackJob(job, ports, new AbortController().signal).then(
      (unpacked): Reply => ({ outcome: 'unpacked', unpacked }),
      failureReply,
    ),
  )
}

/**
 * The most memory that this process has had, in KiB. The kernel begins its count with that of the parent
 * (`parentPeakKiB`): up to there, what it has now.
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
  /** Aborting it kills the child with all its descendants. */
  readonly signal: AbortSignal
  /** Program and arguments of the child; this very program as `unpack` unless a test runs from source. */
  readonly command?: readonly [string, ...string[]]
}

const maxStderrChars = 2_000

/** {@link runUnpackJob} in a child, with the same errors. */
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
  child.stdin.on('error', () => undefined) // it may die before it reads; its exit shows that
  child.stdin.write(`${JSON.stringify(job)}\n`)

  const kill = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // ended meanwhile
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
