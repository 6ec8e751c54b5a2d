/** A release as a folder: everything that people install, from one version of the sources. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { createHostRoot } from '../../src/host/fs/host-root.ts'
import { formatReference, parseReference } from '../../src/packages/oci/reference.ts'
import { type BuiltImage, rootBlob } from '../../src/packages/oci/write/layout.ts'
import { buildPackageImages } from '../../src/cli/package/image.ts'
import { buildCliPackages } from '../cli-packages.ts'
import type { Architecture } from '../debian-packages.ts'
import { buildAgentImages } from '../image.ts'
import { describeArtifacts } from './artifacts.ts'
import { type PinnedImage, writeChartPackage } from './chart-package.ts'
import { checksums } from './checksums.ts'
import { removeWhenInterrupted } from './interruption.ts'
import { type NamedImage, writeLayoutFolder } from './layout-folder.ts'
import { writeManifests } from './manifests.ts'
import { withoutDeadLinks, writePages } from './pages.ts'
import { releaseReadme } from './readme.ts'

const architectures: readonly Architecture[] = ['amd64', 'arm64']

/** Of one architecture, as a node pulls it: config and layers. */
const maxImageBytes = 60_000_000

export type ReleaseOptions = {
  readonly repository: string
  readonly version: string
  /** Replaced if it is a release; must not be there otherwise. */
  readonly out: string
  /** Registry and path of all images. */
  readonly prefix: string
  /**
   * From which the archives of the tool will be downloaded, and home of the chart; without it there is no manifest for
   * krew.
   */
  readonly url: string | undefined
  /** The sources' commit, for the provenance. */
  readonly commit: string
  readonly notes: string
  /** A Debian package whose pin is gone from the mirrors is an error; else its successor is taken. */
  readonly isLocked: boolean
}

/**
 * Writes the folder as a whole or not at all. The same options and sources give the same bytes, wherever the folder is.
 * @returns the images for a push, whose content is in the folder
 * @throws Error where a pin does not fit, an image is too large, or `out` has other files
 */
export async function buildRelease(options: ReleaseOptions): Promise<NamedImage[]> {
  const { repository, version, out, prefix, url, commit, isLocked } = options
  checkReplaceable(out)
  mkdirSync(dirname(out), { recursive: true })
  const work = mkdtempSync(join(tmpdir(), 'skyhookd-release-'))
  const folder = mkdtempSync(`${out}.partial-`)
  const stopRemoving = removeWhenInterrupted([work, folder])
  try {
    const agent: NamedImage = {
      name: 'skyhookd',
      tag: version,
      images: await buildAgentImages({ architectures, isLocked, workFolder: work }),
    }
    for (const image of agent.images) checkSize(image)
    const pinned = { repository: `${prefix}/skyhookd`, digest: rootBlob(agent.images).descriptor.digest }
    const chart = await chartImage(options, pinned, folder)
    const packages = await packageImages(repository, work)
    const images = writeLayoutFolder(join(folder, 'oci'), [agent, chart, ...packages], prefix)
    writeManifests(repository, folder, pinned, prefix)
    const cli = await buildCliPackages({ out: join(folder, 'cli'), architectures, isLocked, url })
    await describeArtifacts({
      repository,
      version,
      prefix,
      url,
      commit,
      isLocked,
      folder,
      work,
      pinned,
      agent,
      chart,
      packages,
      cli,
    })
    copyFileSync(join(repository, 'LICENSE'), join(folder, 'LICENSE'))
    writePages(repository, folder)
    writeFileSync(join(folder, 'README.md'), releaseReadme(version, prefix))
    const isThere = (path: string): boolean => existsSync(join(folder, path))
    writeFileSync(join(folder, 'RELEASE-NOTES'), withoutDeadLinks(options.notes, 'RELEASE-NOTES', isThere))
    writeFileSync(join(folder, checksumsFile), checksums(folder))
    rmSync(out, { recursive: true, force: true })
    renameSync(folder, out)
    return images.map((one) => movedImage(one, folder, out))
  } finally {
    stopRemoving()
    rmSync(work, { recursive: true })
    rmSync(folder, { recursive: true, force: true })
  }
}

const checksumsFile = 'SHA256SUMS'

function checkReplaceable(out: string): void {
  if (!existsSync(out) || existsSync(join(out, checksumsFile)) || readdirSync(out).length === 0) return
  throw new Error(`${out} has files but no ${checksumsFile}, so it is not a release: name another folder, or remove it`)
}

/** @throws Error where the image of an architecture is larger than promised */
function checkSize({ architecture, blobs }: BuiltImage): void {
  const bytes = blobs.reduce((sum, { descriptor }) => sum + descriptor.size, 0)
  if (bytes > maxImageBytes)
    throw new Error(`the agent's image for ${architecture} must have at most ${maxImageBytes} bytes, got ${bytes}`)
}

async function chartImage(
  { repository, version, url }: ReleaseOptions,
  pinned: PinnedImage,
  folder: string,
): Promise<NamedImage> {
  const file = join(folder, `skyhookd-${version}.tgz`)
  return {
    name: 'charts/skyhookd',
    tag: version,
    images: [await writeChartPackage(join(repository, 'chart'), pinned, file, url)],
  }
}

/** Each folder of `packages`, at the version that its config.json states. */
async function packageImages(repository: string, work: string): Promise<NamedImage[]> {
  const root = createHostRoot('/', systemRandom)
  const names = readdirSync(join(repository, 'packages'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort()
  const named: NamedImage[] = []
  for (const name of names) {
    const layers = join(work, 'packages', name)
    mkdirSync(layers, { recursive: true })
    const built = await buildPackageImages(root, join(repository, 'packages', name), architectures, layers)
    named.push({ name: `packages/${name}`, tag: built.package.version, images: built.images })
  }
  return named
}

function movedImage(image: NamedImage, from: string, to: string): NamedImage {
  return {
    ...image,
    images: image.images.map((one) => ({
      ...one,
      blobs: one.blobs.map(({ descriptor, content }) => ({
        descriptor,
        content: Buffer.isBuffer(content) ? content : { file: content.file.replace(from, to) },
      })),
    })),
  }
}

/** Without tag and slash at its end. @throws Error where images cannot be below it */
export function checkPrefix(prefix: string): string {
  const { host, repository, tag, digest } = parseReference(prefix.replace(/\/+$/, ''))
  if (tag !== undefined || digest !== undefined) throw new Error(`${prefix} has a tag: name registry and path only`)
  return formatReference({ host, repository })
}
