/**
 * Log files of steps, with the operator's names: `<step path>-<UTC time>.log` for standard output, `….log.err` for
 * standard error. systemd appends the output of the step unchanged: without the `[out]` prefixes and times that the
 * operator adds to every chunk.
 */
import { posix } from 'node:path'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { agentFolder } from '../../host/fs/journal-file.ts'
import { isTrustedFolder, modeText } from '../../host/fs/trust.ts'
import type { MergedInterrupt } from '../../schemas/package-record.ts'
import { isObject, parseJson } from '../../schemas/json.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import { withLock } from '../keyed-mutex.ts'
import { type HostFolders, interruptTypeNames, logDir, type PackageInstance } from '../layout.ts'

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

/**
 * Records which package wrote which log file. Names and folder are the operator's: packages of one image share them.
 * The record is used only to prune logs. A log whose entry a power cut loses has no owner.
 */

/** A package as its Skyhook names it. */
type LogOwner = { readonly skyhook: string; readonly package: string }

const file = `${agentFolder}/step-logs.json`
/** About 150 KB. The oldest logs lose their owner. */
const maxEntries = 1_000

/** Path of a log on the host, and `SKYHOOK/PACKAGE`; the oldest first. */
type LogOwners = ReadonlyMap<string, string>

const nameOf = ({ skyhook, package: name }: LogOwner): string => `${skyhook}/${name}`

async function readLogOwners(host: HostRoot): Promise<LogOwners> {
  const document = parseJson((await host.readText(file)) ?? '{}')
  if (!isObject(document)) return new Map()
  return new Map(Object.entries(document).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

/** Does not wait for the disk. A failed write does not stop a step: the log has no owner then. */
async function changeLogOwners(host: HostRoot, change: (owners: Map<string, string>) => void): Promise<void> {
  await withLock(host, file, async () => {
    const before = await readLogOwners(host)
    const owners = new Map(before)
    change(owners)
    const text = JSON.stringify(Object.fromEntries([...owners].slice(-maxEntries)))
    if (text === JSON.stringify(Object.fromEntries(before))) return
    await host.writeFile(file, text, 0o600).catch(() => undefined)
  })
}

/**
 * Logs of interrupts, with the operator's names: `interrupts/<type>_<index>-<UTC time>.log` below the logs of the
 * package's version. Each command has a log, and is its first line. The agent does not run the command: it calls
 * systemd and logind over D-Bus. Their errors are in the `.log.err`.
 */

type Command = { readonly log: string; readonly line: string; readonly service?: string }

function commandsOf({ type, services = [], alsoRestartAllServices }: MergedInterrupt): Command[] {
  const logOf = (kind: typeof type, index: number): string => `interrupts/${interruptTypeNames[kind]}_${index}`
  const readSettings = { log: logOf('restartAllServices', 0), line: 'systemctl restart systemd-sysctl.service' }
  switch (type) {
    case 'noop':
      return []
    case 'reboot':
      return [{ log: logOf(type, 0), line: 'reboot' }]
    case 'restartAllServices':
      return [readSettings]
    case 'service': {
      const restarts = services.map((service, index) => {
        return { log: logOf(type, index + 1), line: `systemctl restart ${service}`, service }
      })
      const reload = { log: logOf(type, 0), line: 'systemctl daemon-reload' }
      return [reload, ...(alsoRestartAllServices ? [readSettings] : []), ...restarts]
    }
  }
}

/** `failureOf`: why a command failed, by the service that it restarts; undefined if it succeeded. */
export async function writeInterruptLogs(
  host: HostRoot,
  folders: HostFolders,
  { skyhook, name, version }: Pick<PackageInstance, 'skyhook' | 'name' | 'version'>,
  interrupt: MergedInterrupt,
  nowMs: number,
  failureOf: (service: string | undefined) => string | undefined,
): Promise<void> {
  const dir = `${logDir(folders, skyhook)}/${name}/${version}`
  for (const { log, line, service } of commandsOf(interrupt)) {
    const files = await claimLogFiles(host, dir, log, nowMs, { skyhook, package: name })
    await host.writeFile(files.stdout, `${line}\n`, 0o644)
    const failure = failureOf(service)
    if (failure !== undefined) await host.writeFile(files.stderr, `${failure}\n`, 0o644)
    await pruneLogs(host, dir, log)
  }
}
