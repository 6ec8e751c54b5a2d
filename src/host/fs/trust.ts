/** Which links of the host are followed: those that only root can have made. */
import type { Stats } from 'node:fs'

/**
 * A link in the path that a user of the host made, or could have replaced. Root does not follow it: root would read,
 * write or disclose files that the user may not access.
 */
export class UntrustedLinkError extends Error {
  readonly code = 'EUNTRUSTEDLINK'
}

type Owned = Pick<Stats, 'uid' | 'gid' | 'mode'>

/** For this process; a tool that runs as another user also trusts links of that user. */
const ownUid = process.geteuid?.() ?? 0
const ownGid = process.getegid?.() ?? 0

/**
 * True when only root, or the user of this process, can change the names in the folder. A sticky bit does not count.
 */
export function isTrustedFolder(folder: Owned): boolean {
  const isGroupTrusted = (folder.mode & 0o020) === 0 || folder.gid === 0 || folder.gid === ownGid
  return isTrustedOwner(folder) && isGroupTrusted && (folder.mode & 0o002) === 0
}

/** Throws unless root, or the user of this process, alone can have made the link. */
export function assertTrustedLink(path: string, link: Owned, folder: Owned): void {
  if (isTrustedOwner(link) && isTrustedFolder(folder)) return
  const owner = isTrustedOwner(link)
    ? `its folder belongs to uid ${folder.uid} and has mode ${modeText(folder)}`
    : `it belongs to uid ${link.uid}`
  throw new UntrustedLinkError(
    `${path} is a link that other users of the host can make (${owner}): ` +
      'remove it, or give link and folder to root alone',
  )
}

const isTrustedOwner = ({ uid }: Owned): boolean => uid === 0 || uid === ownUid

export const modeText = ({ mode }: Pick<Stats, 'mode'>): string => (mode & 0o7777).toString(8).padStart(4, '0')

/** For `.catch(…)`: the target of another user's link counts as missing. */
export function ignoreUntrusted(error: unknown): undefined {
  if (!(error instanceof UntrustedLinkError)) throw error
  return undefined
}
