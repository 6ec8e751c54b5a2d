/** The end of what a step wrote, fit for an error message: few lines, no secrets, no control characters. */
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { LogFiles } from './log-files.ts'
import { ignoreNotFound } from '../../host/fs/missing.ts'
import { clipStart } from '../../schemas/plain-text.ts'
import { cleanOutput } from './clean-output.ts'
import { createMask } from './mask.ts'

export type TailLimits = { readonly lines: number; readonly characters: number }

/** An Event's message holds 1 KiB; this leaves room for what surrounds it. */
const messageTailLimits: TailLimits = { lines: 5, characters: 600 }

/**
 * What a failed step said last: its standard error, or, when that is empty, its standard output. Empty when nothing.
 */
export async function failureTail(
  host: HostRoot,
  logs: LogFiles,
  secrets: readonly string[],
  limits: TailLimits = messageTailLimits,
): Promise<string> {
  return (await tailOf(host, logs.stderr, secrets, limits)) || (await tailOf(host, logs.stdout, secrets, limits))
}

/** The last lines of a file that is not empty space; a missing file has none. */
export async function tailOf(
  host: HostRoot,
  path: string,
  secrets: readonly string[],
  { lines, characters }: TailLimits = messageTailLimits,
): Promise<string> {
  const mask = createMask(secrets)
  // what a secret, or a control sequence in it, that began before what was read may have at its start
  const restChars = mask.longestBytes === 0 ? 0 : mask.longestBytes + longestSequence
  // 4: the longest UTF-8 sequence; twice: beside each letter there may be a byte of another encoding
  const bytes = 4 * characters + 2 * restChars
  const end = (await host.readPart(path, 'end', bytes).catch(ignoreNotFound)) ?? Buffer.alloc(0)
  // masked before it is cut: half a secret at the edge of what is shown would not be recognised any more
  const masked = mask.mask(cleanOutput(withoutHalfCharacter(end), true).text)
  const tail = (end.length < bytes ? masked : masked.slice(restChars))
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .slice(-lines)
    .join('\n')
  return clipStart(tail, characters)
}

/** Of those that programs print. */
const longestSequence = 64

const withoutHalfCharacter = (bytes: Buffer): Buffer =>
  bytes.subarray(
    Math.max(
      0,
      bytes.findIndex((byte) => (byte & 0xc0) !== 0x80),
    ),
  )
