/** The end of a step's output for an error message: few lines, no secrets, no control characters. */
import { ignoreNotFound } from '../../host/fs/errors.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { LogFiles } from './log-files.ts'
import { clipStart } from '../../schemas/plain-text.ts'
import { createMask } from './mask.ts'
import { cleanOutput } from './output-reader.ts'

export type TailLimits = { readonly lines: number; readonly characters: number }

/** An Event's message holds 1 KiB; the limits leave room for the rest of the message. */
const messageTailLimits: TailLimits = { lines: 5, characters: 600 }

/**
 * The last output of a failed step: its standard error or, if that is empty, its standard output. Empty without output.
 */
export async function failureTail(
  host: HostRoot,
  logs: LogFiles,
  secrets: readonly string[],
  limits: TailLimits = messageTailLimits,
): Promise<string> {
  return (await tailOf(host, logs.stderr, secrets, limits)) || (await tailOf(host, logs.stdout, secrets, limits))
}

/** The last lines of a file that are not blank; none for a missing file. */
export async function tailOf(
  host: HostRoot,
  path: string,
  secrets: readonly string[],
  { lines, characters }: TailLimits = messageTailLimits,
): Promise<string> {
  const mask = createMask(secrets)
  // room for the rest of a secret, or of a control sequence in it, that starts before this part of the file
  const restChars = mask.longestBytes === 0 ? 0 : mask.longestBytes + longestSequence
  // 4: the longest UTF-8 sequence. 2: a byte of another encoding may follow each letter
  const bytes = 4 * characters + 2 * restChars
  const end = (await host.readPart(path, 'end', bytes).catch(ignoreNotFound)) ?? Buffer.alloc(0)
  // mask before the cut: half a secret at the edge would not be recognized
  const masked = mask.mask(cleanOutput(withoutHalfCharacter(end), true).text)
  const tail = (end.length < bytes ? masked : masked.slice(restChars))
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .slice(-lines)
    .join('\n')
  return clipStart(tail, characters)
}

/** Of the control sequences that programs print. */
const longestSequence = 64

const withoutHalfCharacter = (bytes: Buffer): Buffer =>
  bytes.subarray(
    Math.max(
      0,
      bytes.findIndex((byte) => (byte & 0xc0) !== 0x80),
    ),
  )
