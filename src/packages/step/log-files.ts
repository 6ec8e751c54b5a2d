/**
 * Log files of steps, with the operator's names: `<step path>-<UTC time>.log` for standard output, `….log.err` for
 * standard error. systemd appends the output of the step unchanged: without the `[out]` prefixes and times that the
 * operator adds to every chunk.
 */
import { posix } from 'node:path'
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import { isTrustedFolder, modeText } from '../../host/fs/trust.ts'
import { logDir, type HostFolders } from '../layout.ts'
import { changeLogOwners, type LogOwner, nameOf, readLogOwners } from './log-owners.ts'

/** Paths on the host. */
export type LogFiles = { readonly stdout: string; readonly stderr: string }

/** The operator keeps this number per step path, the agent per step path of each package. */
const maxLogsPerStep = 5

/** Logs of one package version, with the names of config.json. */
export function packageLogDir(folders: HostFolders, skyhook: string, config: PackageConfig): string {
  return `${logDir(folders, skyhook)}/${config.packageName}/${config.packageVersion}`
}

/**
 * Creates the two empty files of one attempt of a step and returns their paths. Names have a resolution of one second.
 * If a name is taken (by a retry, or another package of the same image) `-1`, `-2`, … follow the time. systemd opens
 * the files by these names: rejects if another user of the host could redirect them.
 */
export async function claimLogFiles(
  host: HostRoot,
  dir: string,
  stepPath: string,
  nowMs: number,
  owner?: LogOwner,
): Promise<LogFiles> {
  const stem = `${dir}/${stepPath}-${utcStamp(nowMs)}`
  const folder = posix.dirname(stem)
  await host.mkdirp(folder)
  await assertTrusted(host, folder, posix.resolve(dir, '../../..'))
  for (let suffix = 0; ; suffix++) {
    const stdout = `${stem}${suffix === 0 ? '' : `-${suffix}`}.log`
    if (!(await host.createFile(stdout, 0o644))) continue
    const stderr = `${stdout}.err`
    await host.createFile(stderr, 0o644) // appends to an orphan of that name, whose log no longer exists
    if (owner) await changeLogOwners(host, (owners) => owners.set(stdout, nameOf(owner)))
    return { stdout, stderr }
  }
}

/** Checks the folders from this one up to the root of the logs, which belongs to the agent, too. */
async function assertTrusted(host: HostRoot, folder: string, logRoot: string): Promise<void> {
  const stats = await host.stat(folder)
  if (stats && !isTrustedFolder(stats))
    throw new Error(
      `other users of the host can change ${folder} (uid ${stats.uid}, mode ${modeText(stats)}), ` +
        'where systemd writes the output of steps as root: give it to root alone',
    )
  if (folder.length > logRoot.length && logRoot !== '/') await assertTrusted(host, posix.dirname(folder), logRoot)
}

/**
 * The log files while SKYHOOK_AGENT_WRITE_LOGS is off. They are in the agent's own folder, so that the agent can print
 * the output and quote its end. The caller removes both files when the result is recorded.
 */
export function temporaryLogFiles(folders: HostFolders, attemptId: string): LogFiles {
  const stdout = `${temporaryLogFolder(folders)}/${attemptId}.log`
  return { stdout, stderr: `${stdout}.err` }
}

const temporaryLogFolder = (folders: HostFolders): string => `${folders.copyDirRoot}/.agent/output`

/** Creates the folder of `temporaryLogFiles`, readable by root only. */
export async function ensureTemporaryLogFolder(host: HostRoot, folders: HostFolders): Promise<void> {
  await host.mkdirp(temporaryLogFolder(folders), 0o700)
}

/** Ids of attempts with `temporaryLogFiles`. */
export async function attemptsWithTemporaryLogs(host: HostRoot, folders: HostFolders): Promise<string[]> {
  const names = (await host.list(temporaryLogFolder(folders))) ?? []
  return [...new Set(names.flatMap((name) => /^(.+?)\.log(?:\.err)?$/.exec(name)?.[1] ?? []))]
}

export async function removeTemporaryLogs(host: HostRoot, folders: HostFolders, attemptId: string): Promise<void> {
  const { stdout, stderr } = temporaryLogFiles(folders, attemptId)
  await Promise.all([host.remove(stdout), host.remove(stderr)])
}

/**
 * Keeps the newest five logs of a step path for each package, and removes older logs with their `.err`. Also removes
 * `.err` files without a log (the operator leaves them). A log of an unknown package, such as the operator's, stays
 * while it is among the newest five of all. Call it after a step ended. Files may vanish meanwhile.
 */
export async function pruneLogs(host: HostRoot, dir: string, stepPath: string): Promise<void> {
  const slash = stepPath.lastIndexOf('/')
  const folder = slash < 0 ? dir : `${dir}/${stepPath.slice(0, slash)}`
  const files = (await host.list(folder)) ?? []
  const logs = files.flatMap((file) => parseLogName(file, stepPath.slice(slash + 1)) ?? []).sort(newestFirst)
  const owners = await readLogOwners(host)
  const keptOrders = new Set<string>()
  const counts = new Map<string, number>()
  let newer = 0
  for (const { file, order, isError } of logs) {
    if (isError) continue
    const owner = owners.get(`${folder}/${file}`)
    const newerOfOwner = owner === undefined ? newer : (counts.get(owner) ?? 0)
    if (newerOfOwner < maxLogsPerStep) keptOrders.add(order)
    if (owner !== undefined) counts.set(owner, newerOfOwner + 1)
    newer++
  }
  const gone = logs.filter(({ order }) => !keptOrders.has(order))
  for (const { file } of gone) await host.remove(`${folder}/${file}`)
  if (gone.length > 0)
    await changeLogOwners(host, (known) => {
      for (const { file } of gone) known.delete(`${folder}/${file}`)
    })
}

type ParsedName = { readonly file: string; readonly isError: boolean; readonly order: string }

/** `order` sorts by time and number. */
function parseLogName(file: string, stepName: string): ParsedName | undefined {
  if (!file.startsWith(`${stepName}-`)) return undefined
  const match = /^(\d{4}-\d{2}-\d{2}-\d{6})(?:-(\d+))?\.log(\.err)?$/.exec(file.slice(stepName.length + 1))
  if (!match) return undefined
  const [, stamp = '', number = '0', error] = match
  return { file, isError: error !== undefined, order: `${stamp}-${number.padStart(12, '0')}` }
}

const newestFirst = (a: ParsedName, b: ParsedName): number => (a.order === b.order ? 0 : a.order > b.order ? -1 : 1)

/** `2026-11-20-103209`. */
function utcStamp(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 19).replace('T', '-').replaceAll(':', '')
}
