/** The end of what a step wrote, fit for an error message: few lines, no secrets, no control characters. */
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { LogFiles } from './log-files.ts'
import { ignoreNotFound } from '../../host/fs/missing.ts'
import { maskSecrets } from './mask.ts'

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
  // Masked before it is cut: half a secret at the edge of what is shown would not be recognised any more.
  const slackBytes = Math.max(0, ...secrets.map((secret) => Buffer.byteLength(secret)))
  const end = await readEnd(host, path, 4 * characters + slackBytes) // 4: the longest UTF-8 sequence
  const clean = maskSecrets(end, secrets).replaceAll(/\p{Cc}\[[0-9;]*[A-Za-z]|[^\P{Cc}\n\t]/gu, '')
  const tail = clean
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .slice(-lines)
    .join('\n')
  return tail.length <= characters ? tail : `…${tail.slice(1 - characters)}`
}

async function readEnd(host: HostRoot, path: string, bytes: number): Promise<string> {
  const text = await host.readPart(path, 'end', bytes).catch(ignoreNotFound)
  if (text === undefined) return ''
  const firstCharacterStart = text.findIndex((byte) => (byte & 0xc0) !== 0x80) // not in the middle of a character
  return text.subarray(Math.max(0, firstCharacterStart)).toString()
}
