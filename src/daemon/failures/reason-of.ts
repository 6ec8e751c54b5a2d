import { BusError, describeError, NoReplyError, NotConnectedError } from '../../host/dbus/errors.ts'
import { ApiError, NoResponseError, WatchBehindError } from '../../kube/errors.ts'
import { ImageError } from '../../packages/oci/errors.ts'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'
import { plainExcerpt } from '../../schemas/plain-text.ts'

/** The cause of a failure, as a reason of a Node. */
export type FailureCause = {
  readonly reason: ReasonName
  /** Errno, HTTP status, D-Bus error name or code of the registry: constant for the same error. */
  readonly code: string
  /** The message of the original error. */
  readonly detail: string
  /** Empty if the message already contains it. */
  readonly remedy: string
  /** The Retry-After of the server, in ms. */
  readonly retryAfterMs?: number | undefined
}

type Match = Omit<FailureCause, 'detail'>

/** Errors of files and folders. Other codes get the default of `causeOfErrno`. */
const errnoRemedies: Readonly<Record<string, string>> = {
  EPERM: 'look for an immutable attribute (lsattr) and for security modules',
  EACCES: 'check permissions, and the denials of SELinux or AppArmor in the audit log',
  EBUSY: 'something is mounted there or keeps it in use (findmnt, fuser)',
  ENOSPC: 'free space or inodes on this file system (df, df -i)',
  EDQUOT: 'raise the disk quota or free space',
  EROFS: 'mount the file system read-write; after a disk error the kernel mounts it read-only',
  EIO: "check the disk and the kernel's log",
  ELOOP: 'correct the symbolic links on the path: they form a loop, or a link stands where a file is expected',
  ENOTDIR: 'remove the file that stands where a folder is expected',
  EISDIR: 'remove the folder that stands where a file is expected',
  EEXIST: 'remove the file or folder that has its name',
  ENOTEMPTY: 'remove the remaining content of the folder',
  ENOENT: 'create the missing file or folder again',
  ENAMETOOLONG: 'shorten the names of Skyhook, package, version or step',
  EMFILE: 'raise the limit of open files of the agent (LimitNOFILE of the container runtime)',
  ENFILE: 'raise fs.file-max on the host, or end the program that holds many files open',
  ETXTBSY: 'end the program that runs from this file',
  EXDEV: 'remove the mount inside the folder: it must be one file system',
  EFBIG: 'the file exceeds a limit of the file system or of the process (ulimit -f)',
  EMLINK: 'the file system does not allow more links or folders there',
  ENOMEM: 'free memory on the host, or raise the memory limit of the agent',
  ESTALE: 'mount the network file system again',
  ENXIO: 'a device or socket stands where a file is expected: remove it',
  ENODEV: 'a device stands where a file is expected: remove it',
  EINVAL: 'the file system does not support the operation: use ext4 or xfs',
  EOPNOTSUPP: 'the file system does not support the operation: use ext4 or xfs',
  ENOSYS: 'the file system does not support the operation: use ext4 or xfs',
}

/** Refusals of the API server; 429 and 5xx are not refusals. */
const statusRemedies: Readonly<Record<number, string>> = {
  401: "check the agent's ServiceAccount and its token",
  403: "compare the agent's roles with those of the chart, and look for admission policies that refuse it",
  404: 'check that the namespace and the resource definitions of the chart are installed',
  409: 'look for an admission webhook or another writer that keeps the object from being changed',
  413: 'the object is too large: remove unneeded annotations',
  422: 'look for admission webhooks that change the object, and compare the versions of chart and API server',
}
const otherRefusalRemedy = 'compare the versions of chart and API server, and look for proxies between them'

/** Errors of the bus after which the service cannot have answered. */
const unreachableNames = new Set([
  'org.freedesktop.DBus.Error.Disconnected',
  'org.freedesktop.DBus.Error.NameHasNoOwner',
  'org.freedesktop.DBus.Error.NoReply',
  'org.freedesktop.DBus.Error.NoServer',
  'org.freedesktop.DBus.Error.ServiceUnknown',
  'org.freedesktop.DBus.Error.TimedOut',
  'org.freedesktop.DBus.Error.Timeout',
])
const busRemedies: Readonly<Record<string, string>> = {
  'org.freedesktop.DBus.Error.AccessDenied': 'check polkit, the bus policy, and the denials of SELinux or AppArmor',
  'org.freedesktop.DBus.Error.InteractiveAuthorizationRequired': 'check the polkit rules of the host',
  'org.freedesktop.DBus.Error.LimitsExceeded': "raise the bus's limits, or end the program that uses them up",
  'org.freedesktop.DBus.Error.UnknownMethod': 'systemd 240 or later is needed',
  'org.freedesktop.DBus.Error.UnknownProperty': 'systemd 240 or later is needed',
}

/** The reason for any error: the outermost known cause decides. All unknown errors are an InternalError. */
export function causeOf(error: unknown): FailureCause {
  const chain = causesOf(error)
  const details = chain.map((one) => plainExcerpt(describe(one), maxDetailLength))
  const detail = plainExcerpt([...new Set(details)].join(': '), maxDetailLength)
  for (const cause of chain) {
    const match = matchOf(cause)
    if (match) return { ...match, detail }
  }
  const code = chain[0] instanceof Error ? chain[0].name : typeof error
  return { reason: 'InternalError', code, detail, remedy: "the agent tries again; report it with the agent's log" }
}

/** True if the error has a reason other than InternalError. */
export const isForeseen = (error: unknown): boolean => causesOf(error).some((cause) => matchOf(cause) !== undefined)

function matchOf(error: unknown): Match | undefined {
  if (error instanceof ApiError) return { ...causeOfStatus(error.status), retryAfterMs: error.retryAfterMs }
  if (error instanceof WatchBehindError)
    return {
      reason: 'ApiServerUnavailable',
      code: 'watch-behind',
      remedy: 'the agent lists the object and tries again',
    }
  if (error instanceof NoResponseError)
    return { reason: 'ApiServerUnavailable', code: 'no-answer', remedy: 'the agent tries again' }
  if (error instanceof ImageError)
    return { reason: error.code === 'bad-image' ? 'InvalidPackage' : 'ImagePull', code: error.code, remedy: '' }
  if (error instanceof NotConnectedError || error instanceof NoReplyError)
    return { reason: 'HostUnreachable', code: error.name, remedy: 'check that dbus and systemd answer on the host' }
  if (error instanceof BusError) return causeOfBusError(error.name)
  if (error instanceof UnfitHostError) return { reason: 'HostUnusable', code: 'unfit', remedy: '' }
  if (error instanceof SyntaxError)
    return { reason: 'HostUnusable', code: 'invalid-file', remedy: 'remove the damaged file' }
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? causeOfErrno(error.code)
    : undefined
}

function causeOfStatus(status: number): Match {
  const code = `HTTP ${status}`
  return status === 429 || status >= 500
    ? { reason: 'ApiServerUnavailable', code, remedy: 'the agent tries again' }
    : { reason: 'ApiRequestRefused', code, remedy: statusRemedies[status] ?? otherRefusalRemedy }
}

function causeOfBusError(name: string): Match {
  return unreachableNames.has(name)
    ? { reason: 'HostUnreachable', code: name, remedy: 'check that dbus and systemd answer on the host' }
    : {
        reason: 'HostUnusable',
        code: name,
        remedy: busRemedies[name] ?? 'look at the journal of the host (journalctl)',
      }
}

/** Node's own codes (`ERR_…`) are mistakes of the program, not of the host. */
function causeOfErrno(code: string): Match | undefined {
  if (!/^E[A-Z0-9]+$/.test(code)) return undefined
  return { reason: 'HostUnusable', code, remedy: errnoRemedies[code] ?? 'look at this path on the host' }
}

const maxCauses = 5
/** Leaves room for the operation and the remedy in a reason. */
const maxDetailLength = 700

function causesOf(error: unknown): readonly unknown[] {
  const causes: unknown[] = []
  for (let current: unknown = error; current !== undefined && causes.length < maxCauses; ) {
    causes.push(current)
    current = current instanceof Error ? current.cause : undefined
  }
  return causes
}

function describe(error: unknown): string {
  if (error instanceof ApiError)
    return [error.request, `HTTP ${error.status}`, error.message].filter((part) => part !== undefined).join(': ')
  return error instanceof Error ? describeError(error) : JSON.stringify(error)
}

/** The outcome of an action. A rejection instead is a bug. */
export type ActionOutcome =
  | { readonly outcome: 'done' }
  /** An error that has a reason; the action is retried as long as a plan contains it. */
  | { readonly outcome: 'failed'; readonly error: unknown }

/** Rejects only with an unforeseen error. */
export async function outcomeOf(task: Promise<void>): Promise<ActionOutcome> {
  try {
    await task
    return { outcome: 'done' }
  } catch (error) {
    if (!isForeseen(error)) throw error
    return { outcome: 'failed', error }
  }
}

/** The host currently cannot do any work; the message gives the reason and the remedy. */
export class UnfitHostError extends Error {
  override readonly name = 'UnfitHostError'
}
