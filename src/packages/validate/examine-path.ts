import type { HostRoot } from '../../host/fs/host-root.ts'
import { openArchive } from './archive.ts'
import { examineFolder, examineImages, type ExaminedPackage, failedImage } from './examine.ts'

export type PathPorts = {
  /** Files of this machine. */
  readonly root: HostRoot
  /** Absolute path of a folder for temporarily unpacked content. */
  readonly temporaryFolder: string
}

export type PathExamination =
  | { readonly outcome: 'examined'; readonly examined: readonly ExaminedPackage[] }
  | { readonly outcome: 'not-found' }
  /** A file that is neither config.json nor an archive. */
  | { readonly outcome: 'not-a-package' }

/**
 * Examines a package at a path of this machine: its folder, its config.json, or an archive with an image. `subject` is
 * the path as the user wrote it. Rejects only on a disk error.
 */
export async function examinePath(ports: PathPorts, path: string, subject: string): Promise<PathExamination> {
  const { root } = ports
  const stats = await root.stat(path)
  if (stats === undefined) return { outcome: 'not-found' }
  if (stats.isDirectory()) return { outcome: 'examined', examined: [await examineFolder(root, path, subject)] }
  if (path.endsWith('/config.json')) {
    const folder = subject.includes('/') ? subject.slice(0, subject.lastIndexOf('/')) : '.'
    return { outcome: 'examined', examined: [await examineFolder(root, path.slice(0, -'/config.json'.length), folder)] }
  }
  if (!stats.isFile() || !(await isArchive(root, path))) return { outcome: 'not-a-package' }
  return { outcome: 'examined', examined: await examineArchive(ports, path, subject) }
}

async function examineArchive(
  { root, temporaryFolder }: PathPorts,
  path: string,
  subject: string,
): Promise<ExaminedPackage[]> {
  const workFolder = await root.makeUniqueFolder(`${temporaryFolder}/skyhook-validate-`, 0o700)
  try {
    const blobs = `${workFolder}/files`
    await root.makeFolder(blobs, 0o700)
    const images = await openArchive(await root.resolve(path), await root.resolve(blobs))
    return await examineImages({ root, workFolder }, images, subject)
  } catch (error) {
    return [failedImage(subject, error)]
  } finally {
    await root.remove(workFolder)
  }
}

const tarMagicOffset = 257

/** Whether the file is a tar archive, plain or compressed with gzip or zstd, by its first bytes. */
async function isArchive(root: HostRoot, path: string): Promise<boolean> {
  const head = await root.readPart(path, 'start', 512)
  return (
    head.subarray(0, 2).equals(Buffer.from([0x1f, 0x8b])) ||
    head.subarray(0, 4).equals(Buffer.from([0x28, 0xb5, 0x2f, 0xfd])) ||
    head.subarray(tarMagicOffset, tarMagicOffset + 5).toString('latin1') === 'ustar'
  )
}
