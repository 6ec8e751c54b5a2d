/**
 * Examines packages with the loader that agents use: a package that is valid here loads on a node. Shared by the
 * agent's `skyhookd validate` and the command-line tool.
 */
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { ImageErrorCode } from '../../schemas/catalogue/reason-codes.ts'
import type { Examined, Finding } from '../../schemas/finding.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import { type Problem, pointerSegment } from '../../schemas/validation.ts'
import { counted } from '../../schemas/wording.ts'
import { scriptsDir } from '../layout.ts'
import { ImageError } from '../oci/errors.ts'
import { loadPackage, stepPaths } from '../step/load-package.ts'
import { unpackPackage } from '../store/unpack.ts'
import { type ArchivedImage, openArchive } from './archive.ts'

/** The content of each path of the host from `root_dir/`: a hash, or the target of a link. */
export type HostFiles = ReadonlyMap<string, string>

/** The content of a valid package. */
export type ExaminedPackage = Examined & {
  readonly package?: {
    readonly name: string
    readonly version: string
    readonly config: PackageConfig
    /** Names of the files in `configmaps/`. */
    readonly ownConfigFiles: readonly string[]
    readonly hostFiles: HostFiles
  }
}

/**
 * Examines a package whose content is in `dir`. `subject` names it for people; findings are in `subject/config.json`.
 * Rejects only on a disk error.
 */
export async function examineFolder(root: HostRoot, dir: string, subject: string): Promise<ExaminedPackage> {
  const file = subject === '.' ? 'config.json' : `${subject.replace(/\/$/, '')}/config.json`
  const loaded = await loadPackage(root, dir)
  if (loaded.outcome === 'invalid') {
    const isDerived = await hasBaseImage(root, dir)
    const findings = loaded.problems.map(
      (problem): Finding => ({
        severity: 'error',
        file,
        ...problem,
        ...(isDerived && problem.rule === missingFileRule && { remedy: `${problem.remedy}; ${derivedRemedy}` }),
      }),
    )
    return { subject, kind: 'package', findings }
  }
  const { config, ownConfigFiles } = loaded
  const lineEnds = await lineEndProblems(root, dir, config)
  const findings = [...loaded.warnings, ...lineEnds].map(
    (problem): Finding => ({ severity: 'warning', file, ...problem }),
  )
  for (const [index, name] of config.expectedConfigFiles.entries()) {
    if (!name.includes('/')) continue
    findings.push({
      severity: 'warning',
      file,
      pointer: `/expected_config_files/${pointerSegment(String(index))}`,
      value: name,
      message: 'cannot be a key of configMap, which has no folders: every stage would wait for it',
      rule: 'expected-file-folder',
      remedy: 'name a file without folders, or put the file into configmaps/ of the package',
    })
  }
  return {
    subject,
    kind: 'package',
    findings,
    package: {
      name: config.packageName,
      version: config.packageVersion,
      config,
      ownConfigFiles,
      hostFiles: await hostFilesOf(root, dir),
    },
  }
}

const missingFileRule = 'step-file/missing'
const derivedRemedy = 'if it is in the base image of the Dockerfile, build the image and validate that'

/** Whether the last stage of its Dockerfile has a base image, so that the image contains more than the folder. */
async function hasBaseImage(root: HostRoot, dir: string): Promise<boolean> {
  const text = (await root.readText(`${dir}/Dockerfile`)) ?? ''
  const [, base = 'scratch'] = [...text.matchAll(/^\s*FROM\s+(?:--\S+\s+)*(\S+)/gim)].at(-1) ?? []
  return base !== 'scratch'
}

/**
 * Finds scripts with a correct first line and with carriage returns in later lines, which their interpreter does not
 * expect.
 */
async function lineEndProblems(root: HostRoot, dir: string, config: PackageConfig): Promise<Problem[]> {
  const problems: Problem[] = []
  for (const [path, pointer] of stepPaths(config)) {
    const script = `${scriptsDir(dir)}/${path}`
    if ((await root.readPart(script, 'start', 2)).toString('latin1') !== '#!') continue
    const content = await root.readFile(script)
    const at = content.indexOf('\r\n')
    if (at < 0) continue
    const line = content.subarray(0, at).toString('latin1').split('\n').length
    problems.push({
      pointer,
      value: path,
      message: `has Windows line endings from line ${line} on: its interpreter reads the carriage return as text`,
      rule: 'step-file/line-ends',
      remedy: 'end lines with only a line feed',
    })
  }
  return problems
}

async function hostFilesOf(root: HostRoot, dir: string): Promise<HostFiles> {
  const entries = (await root.describeTree(`${dir}/root_dir`)) ?? []
  return new Map(
    entries.flatMap((entry) =>
      entry.kind === 'folder' ? [] : [[entry.path, entry.kind === 'file' ? entry.sha256 : `link ${entry.target}`]],
    ),
  )
}

export type ImagePorts = {
  readonly root: HostRoot
  /** An existing folder of the host for content; the caller removes it. */
  readonly workFolder: string
}

/** Examines each distinct content of the images, unpacked as agents do. Rejects only on a disk error. */
export async function examineImages(
  { root, workFolder }: ImagePorts,
  images: readonly ArchivedImage[],
  subject: string,
): Promise<ExaminedPackage[]> {
  if (images.length === 0)
    return [failedImage(subject, new ImageError('bad-image', 'the archive has no image for linux'))]
  const byContent = new Map<string, ArchivedImage[]>()
  for (const image of images) {
    const key = JSON.stringify(image.layers)
    byContent.set(key, [...(byContent.get(key) ?? []), image])
  }
  const examined: ExaminedPackage[] = []
  for (const [index, same] of [...byContent.values()].entries()) {
    const platforms = same.flatMap(({ platform }) => platform ?? [])
    const name = byContent.size === 1 ? subject : `${subject} (${platforms.join(', ')})`
    const target = `${workFolder}/package-${index}`
    try {
      await unpackPackage({ layers: same[0]?.layers ?? [], target: await root.resolve(target) })
      examined.push(await examineFolder(root, target, name))
    } catch (error) {
      examined.push(failedImage(name, error))
    }
  }
  return examined
}

/** An unreadable image, as a finding. @throws any error except an ImageError */
export function failedImage(subject: string, error: unknown): ExaminedPackage {
  if (!(error instanceof ImageError)) throw error
  const finding: Finding = {
    severity: 'error',
    file: subject,
    pointer: '',
    message: error.message,
    rule: `image/${error.code}`,
    remedy: remedies[error.code] ?? 'build the image again',
  }
  return { subject, kind: 'package', findings: [finding] }
}

const remedies: Readonly<Partial<Record<ImageErrorCode, string>>> = {
  'bad-reference': 'write [host[:port]/]repository:tag or …@sha256:digest',
  misconfigured: 'fix the configuration that the message names',
  'not-found': 'check the name, and push the image',
  unauthorized: 'log in to the registry',
  denied: 'request read access to the repository',
  'digest-mismatch': 'write the archive again, or pull from another mirror',
  unreachable: 'check name, network and proxy',
  tls: 'pass the certificate authority of the registry with --ca',
  'rate-limited': 'try again later, or log in',
  unavailable: 'try again later',
  'too-large': 'remove what the package does not need',
  'bad-image': 'put the package into /skyhook-package of an image, as `kubectl skyhook package build` does',
}

type PathPorts = {
  /** Files of this machine. */
  readonly root: HostRoot
  /** Absolute path of a folder for temporarily unpacked content. */
  readonly temporaryFolder: string
}

type PathExamination =
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

/** Finds files that several packages of one host install. */

/** Adds a warning to each package that has a file of `root_dir/` with different content than an earlier package. */
export function withSharedFiles(examined: readonly ExaminedPackage[]): readonly ExaminedPackage[] {
  return examined.map((one, index) => ({
    ...one,
    findings: [...one.findings, ...examined.slice(0, index).flatMap((other) => findingOf(one, other) ?? [])],
  }))
}

function findingOf(one: ExaminedPackage, other: ExaminedPackage): Finding | undefined {
  if (one.package === undefined || other.package === undefined || one.package.name === other.package.name)
    return undefined
  const { hostFiles } = other.package
  const paths = [...one.package.hostFiles]
    .filter(([path, content]) => hostFiles.has(path) && hostFiles.get(path) !== content)
    .map(([path]) => path)
  const [path, ...more] = paths
  if (path === undefined) return undefined
  const also = more.length === 0 ? '' : `, as ${more.length === 1 ? 'does' : 'do'} ${counted(more.length, 'more file')}`
  return {
    severity: 'warning',
    file: one.subject,
    pointer: '',
    message:
      `root_dir${path} has different content in ${other.subject}${also}: ` +
      'a host with both has the content of the last stage',
    rule: 'root-dir/conflict',
    remedy: 'ship the file in one package only, or rename it in one of them',
  }
}
