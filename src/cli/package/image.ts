/** A package folder as an image, without a container engine. */
import type { HostRoot } from '../../host/fs/host-root.ts'
import { packageFolder } from '../../packages/store/layer-paths.ts'
import { examineFolder, type ExaminedPackage } from '../../packages/validate/examine.ts'
import { type LayerEntry, readFolder, writeLayer } from '../../packages/oci/write/layer.ts'
import { buildImage, type BuiltImage } from '../../packages/oci/write/layout.ts'
import { formatFindings, hasErrors } from '../../schemas/finding.ts'
import { CommandError, usageError, exitCodes } from '../framework/command-error.ts'

/** OCI's names of what Kubernetes nodes are made of. */
const knownArchitectures = ['amd64', 'arm64']

export type PackageImages = {
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
export function validPackage(examined: ExaminedPackage): { readonly name: string; readonly version: string } {
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
