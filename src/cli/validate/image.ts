/** An image in a registry, examined for every architecture that it is built for. */
import { createLocalRoot, type HostRoot } from '../../host/fs/host-root.ts'
import { resolveImage, type ResolvedImage, selectImage } from '../../packages/oci/read/pull.ts'
import type { RegistryClient } from '../../packages/oci/read/registry.ts'
import { hexOf, type ImageReference, parseReference } from '../../packages/oci/reference.ts'
import { downloadLayers } from '../../packages/store/unpack-download.ts'
import type { ArchivedImage } from '../../packages/validate/archive.ts'
import { examineImages, type ExaminedPackage, failedImage } from '../../packages/validate/examine.ts'
import type { Finding } from '../../schemas/finding.ts'
import type { Random } from '../../schemas/clock.ts'

export type ImagePorts = {
  readonly random: Random
  readonly signal: AbortSignal
  /** Absolute path. */
  readonly temporaryFolder: string
  readonly openRegistry: (host: string) => Promise<RegistryClient>
}

/** What the registry fails at is a finding; rejects for the disk and when the signal aborts. */
export async function examineReference(ports: ImagePorts, text: string): Promise<ExaminedPackage[]> {
  const root = createLocalRoot(ports.random)
  const workFolder = await root.makeUniqueFolder(`${ports.temporaryFolder}/skyhook-validate-`, 0o700)
  let client: RegistryClient | undefined
  try {
    const reference = parseReference(text)
    client = await ports.openRegistry(reference.host)
    const resolved = await resolveImage(client, reference, ports.signal)
    const images = await download({ root, workFolder, signal: ports.signal }, client, resolved)
    const examined = await examineImages({ root, workFolder }, images, text)
    return examined.map((one) => ({ ...one, findings: [...one.findings, ...imageFindings(one, reference, resolved)] }))
  } catch (error) {
    ports.signal.throwIfAborted()
    return [failedImage(text, error)]
  } finally {
    client?.close()
    await root.remove(workFolder)
  }
}

const architecturesOf = ({ manifest }: ResolvedImage): string[] =>
  manifest.kind === 'image'
    ? []
    : [
        ...new Set(
          manifest.manifests.flatMap(({ platform }) => (platform?.os === 'linux' ? [platform.architecture] : [])),
        ),
      ]

async function download(
  { root, workFolder, signal }: { readonly root: HostRoot; readonly workFolder: string; readonly signal: AbortSignal },
  client: RegistryClient,
  resolved: ResolvedImage,
): Promise<ArchivedImage[]> {
  const images: ArchivedImage[] = []
  const folders = new Map<string, string>() // architectures often share their only layer
  const architectures = architecturesOf(resolved)
  for (const architecture of architectures.length === 0 ? [undefined] : architectures) {
    const { layers } = await selectImage(client, resolved, architecture ?? 'amd64', signal)
    const content = layers.map(({ digest }) => digest).join()
    const folder = folders.get(content) ?? `${workFolder}/layers-${folders.size}`
    if (!folders.has(content)) {
      folders.set(content, folder)
      await root.makeFolder(folder, 0o700)
      await downloadLayers(client, resolved.reference, layers, folder, signal)
    }
    const platform = architecture === undefined ? undefined : `linux/${architecture}`
    images.push({ platform, layers: layers.map(({ digest }) => `${folder}/${hexOf(digest)}`) })
  }
  return images
}

/** The architectures of almost all nodes. */
const commonArchitectures = ['amd64', 'arm64']

function imageFindings({ subject, package: found }: ExaminedPackage, { tag }: ImageReference, resolved: ResolvedImage) {
  const findings: Finding[] = []
  const warn = (rule: string, message: string, remedy: string): void =>
    void findings.push({ severity: 'warning', file: subject, pointer: '', message, rule, remedy })
  if (found !== undefined && tag !== undefined && tag.replace(/^v/, '') !== found.version) {
    const message = `has the tag ${tag} and package_version ${found.version}`
    warn('tag-version', message, 'push it under the tag that is its version')
  }
  const architectures = architecturesOf(resolved)
  const missing = commonArchitectures.filter((one) => !architectures.includes(one))
  if (resolved.manifest.kind === 'index' && missing.length > 0) {
    const message = `has no image for ${missing.join(', ')}: nodes of that architecture cannot pull it`
    warn('architecture', message, 'build it for amd64 and arm64')
  }
  return findings
}
