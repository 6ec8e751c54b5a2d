/** A package folder as an image, without a container engine. */
import { type HostRoot, createLocalRoot } from '../../host/fs/host-root.ts'
import { packageFolder } from '../../packages/store/layer-paths.ts'
import { examineFolder, type ExaminedPackage } from '../../packages/validate/examine.ts'
import { type LayerEntry, readFolder, writeLayer } from '../../packages/oci/write/layer.ts'
import { buildImage, type BuiltImage, rootBlob, writeLayoutArchive } from '../../packages/oci/write/layout.ts'
import { formatFindings, hasErrors } from '../../schemas/finding.ts'
import { CommandError, usageError, exitCodes, type ExitCode } from '../base/framework/command-error.ts'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { formatReference, parseReference } from '../../packages/oci/reference.ts'
import type { Context } from '../base/framework/command.ts'
import { ImageError } from '../../packages/oci/errors.ts'
import { pushImages } from '../../packages/oci/write/push.ts'
import type { RegistryFlags } from '../base/registry/flags.ts'
import { openRegistry, type RegistryAccess } from '../base/registry/settings.ts'

/** OCI's names of what Kubernetes nodes are made of. */
const knownArchitectures = ['amd64', 'arm64']

type PackageImages = {
  readonly images: readonly BuiltImage[]
  readonly package: { readonly name: string; readonly version: string }
}

/**
 * The images of a package, one per architecture: one layer with the folder as /skyhook-package. The same files give the
 * same digests on every machine: owner, times and the umask of a checkout are left out.
 * @param workFolder exists while the images are used
 * @throws CommandError where the package is invalid
 */
export async function buildPackageImages(
  root: HostRoot,
  folder: string,
  architectures: readonly string[],
  workFolder: string,
): Promise<PackageImages> {
  const unknown = architectures.find((one) => !knownArchitectures.includes(one))
  if (unknown !== undefined)
    throw usageError(`"${unknown}" is not a known architecture`, `use ${knownArchitectures.join(' or ')}`)
  const about = validPackage(await examineFolder(root, folder, folder))
  const entries = [
    { kind: 'folder', path: packageFolder, mode: 0o755 } as const,
    ...(await readFolder(folder, packageFolder))
      .filter(({ path }) => !isLeftOut(path.slice(packageFolder.length + 1)))
      .map(normalized),
  ]
  const layer = await writeLayer(entries, `${workFolder}/layer.tar.gz`)
  const labels = { 'org.opencontainers.image.title': about.name, 'org.opencontainers.image.version': about.version }
  const images = [...new Set(architectures)].sort().map((architecture) => buildImage([layer], { architecture, labels }))
  return { images, package: about }
}

/** Name and version in the examined package. @throws CommandError with every finding where it is invalid */
function validPackage(examined: ExaminedPackage): { readonly name: string; readonly version: string } {
  if (examined.package !== undefined && !hasErrors([examined])) return examined.package
  const remedy = 'fix the package, then try again'
  throw new CommandError(exitCodes.failed, formatFindings([examined], 'text').trimEnd(), remedy)
}

/** What version control, editors and container engines leave in the folder of a package: it is in no image. */
export const isLeftOut = (path: string): boolean =>
  path === 'Dockerfile' ||
  path === '.dockerignore' ||
  path.split('/').some((name) => name === '.git' || name === '.gitignore' || name === '.DS_Store' || name.endsWith('~'))

function normalized(entry: LayerEntry): LayerEntry {
  switch (entry.kind) {
    case 'folder':
      return { ...entry, mode: 0o755 }
    case 'file':
      return { ...entry, mode: (entry.mode & 0o111) === 0 ? 0o644 : 0o755 }
    case 'link':
      return entry
  }
}

type BuildFlags = {
  readonly file: string | undefined
  readonly tag: string | undefined
  readonly arch: readonly string[]
}

/** Writes the archive and prints its name and digest. @throws CommandError where the package is invalid */
export async function buildPackage(
  { stdout, random }: Context,
  { folder }: { readonly folder: string },
  flags: BuildFlags,
): Promise<ExitCode> {
  const root = createLocalRoot(random)
  const workFolder = await root.makeUniqueFolder(`${tmpdir()}/skyhook-build-`, 0o700)
  try {
    const architectures = flags.arch.length > 0 ? flags.arch : ['amd64', 'arm64']
    const { images, package: about } = await buildPackageImages(root, resolve(folder), architectures, workFolder)
    const file = flags.file ?? `${about.name}-${about.version}.tar`
    const tag = about.version.replaceAll('+', '_') // not legal in a tag
    await writeLayoutArchive(
      resolve(file),
      images,
      formatReference(parseReference(flags.tag ?? `${about.name}:${tag}`)),
    )
    stdout.write(`${file} ${rootBlob(images).descriptor.digest}\n`)
    return exitCodes.ok
  } finally {
    await root.remove(workFolder)
  }
}

/** As `make release` takes them: for the registry of the reference, and no other. Flags count more. */
function accessIn(environment: Context['environment'], { ca }: RegistryFlags): Partial<RegistryAccess> {
  const { REGISTRY_USER: username, REGISTRY_PASSWORD: password = '', REGISTRY_CA } = environment
  const file = ca ?? REGISTRY_CA
  return { ...(username !== undefined && { login: { username, password } }), ...(file !== undefined && { ca: file }) }
}

const remedies: Partial<Record<ImageError['code'], string>> = {
  unauthorized: 'run "docker login" for this registry',
  tls: "name the registry's authority with --ca FILE; --plain-http is for a registry without TLS",
}

/** Builds, pushes and prints the reference with its digest. @throws CommandError */
export async function pushPackage(
  context: Context,
  { folder, reference: text }: { readonly folder: string; readonly reference: string },
  flags: RegistryFlags & { readonly arch: readonly string[] },
): Promise<ExitCode> {
  const root = createLocalRoot(context.random)
  const workFolder = await root.makeUniqueFolder(`${tmpdir()}/skyhook-push-`, 0o700)
  try {
    const architectures = flags.arch.length > 0 ? flags.arch : ['amd64', 'arm64']
    const { images, package: about } = await buildPackageImages(root, resolve(folder), architectures, workFolder)
    const place = parseReference(text)
    if (place.digest !== undefined)
      throw usageError(`${text} has a digest`, 'write a tag: the content decides the digest')
    const tag = place.tag ?? about.version
    if (tag.includes('+'))
      throw usageError(
        `version ${tag} is not a legal tag`,
        'write a tag, and name the image by its digest in containerSHA',
      )
    if (tag !== about.version && tag !== `v${about.version}`)
      context.stderr.write(`warning: the tag ${tag} differs from package_version ${about.version} of config.json\n`)
    const client = await openRegistry(context, { ...flags, ...accessIn(context.environment, flags) }, place.host)
    try {
      const digest = await pushImages(client, { ...place, tag }, images, context.signal)
      context.stdout.write(`${formatReference({ ...place, tag })}@${digest}\n`)
    } finally {
      client.close()
    }
    return exitCodes.ok
  } catch (error) {
    if (!(error instanceof ImageError)) throw error
    throw new CommandError(exitCodes.failed, error.message, remedies[error.code], { cause: error })
  } finally {
    await root.remove(workFolder)
  }
}
