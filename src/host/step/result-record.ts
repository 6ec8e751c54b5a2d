/**
 * The record that a step's unit leaves when it ends, with or without a running agent.
 *
 * systemd starts the recorder (ExecStopPost) with the result in its environment. It writes one line and syncs it. A
 * truncated line, or one of another boot or invocation, does not count.
 */
import { dirname } from 'node:path'
import type { HostRoot } from '../fs/host-root.ts'
import type { UnitEnd } from '../systemd/unit-state.ts'

export type StepRecord = UnitEnd & {
  readonly attempt: string
  readonly invocationId: string
  readonly bootId: string
  /** The host was going down when the step ended, and may have stopped it. */
  readonly isHostStopping: boolean
}

/**
 * Arguments: folder and attempt. Uses only programs that every host has and that are quick: the step's end waits for
 * it. It asks systemd for its state only after a failure (a process and a call, 5 ms), because only a failure may come
 * from a shutdown. No temporary file: the reader recognizes a whole line, so one sync of file and folder suffices,
 * instead of two and a rename.
 */
export const recorderScript = `#!/bin/sh
# skyhookd: records how a step ended. Started by systemd as ExecStopPost: record-result FOLDER ATTEMPT
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec 2>/dev/null
umask 077
read -r boot </proc/sys/kernel/random/boot_id
system=
[ "$SERVICE_RESULT" = success ] || system=$(systemctl is-system-running)
printf '{"v":1,"attempt":"%s","result":"%s","code":"%s","status":"%s","invocation":"%s","boot":"%s","system":"%s"}\\n' \\
  "$2" "$SERVICE_RESULT" "$EXIT_CODE" "$EXIT_STATUS" "$INVOCATION_ID" "$boot" "$system" >"$1/$2" &&
  { sync "$1/$2" "$1" || sync; }
`

/** Puts the recorder and its folder on the host, or repairs them. */
export async function ensureRecorder(root: HostRoot, path: string, resultsFolder: string): Promise<void> {
  const [currentScript, resultsStats] = await Promise.all([root.readText(path), root.stat(resultsFolder)])
  const isCurrent = currentScript === recorderScript
  if (isCurrent && resultsStats) return
  await root.mkdirp(dirname(path), 0o700)
  await root.mkdirp(resultsFolder, 0o700)
  if (!isCurrent) await root.writeFileDurable(path, recorderScript, 0o755)
}

/** The record of an attempt; undefined when it is missing or incomplete. */
export async function readResultRecord(
  root: HostRoot,
  resultsFolder: string,
  attempt: string,
): Promise<StepRecord | undefined> {
  const content = await root.readText(`${resultsFolder}/${attempt}`)
  return content === undefined ? undefined : parseResultRecord(content, attempt)
}

/** Undefined unless `content` is one whole line about `attempt`. */
export function parseResultRecord(content: string, attempt: string): StepRecord | undefined {
  if (!content.endsWith('}\n')) return undefined // the recorder, the disk or the host failed in the middle
  let record: Record<string, unknown>
  try {
    record = JSON.parse(content) as Record<string, unknown>
  } catch {
    return undefined // not ours
  }
  const { result, code, status, invocation, boot, system } = record
  if (record['v'] !== 1 || record['attempt'] !== attempt) return undefined
  if (typeof result !== 'string' || typeof status !== 'string' || !isCode(code)) return undefined
  if (typeof invocation !== 'string' || typeof boot !== 'string' || invocation === '' || boot === '') return undefined
  return {
    attempt,
    result,
    code,
    status,
    invocationId: invocation,
    bootId: boot,
    isHostStopping: system === 'stopping',
  }
}

function isCode(value: unknown): value is UnitEnd['code'] {
  return value === 'exited' || value === 'killed' || value === 'dumped' || value === ''
}
