/**
 * The chart as a package, as `helm package` makes it but without times, and with the agent's image pinned by digest.
 */
import { readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { isScalar, parse, parseDocument, stringify } from 'yaml'
import { ociManifestType } from '../../src/packages/oci/manifest.ts'
import { digestOf } from '../../src/packages/oci/reference.ts'
import { type BuiltLayer, type LayerEntry, readFolder, writeLayer } from '../../src/packages/oci/write/layer.ts'
import type { Blob, BuiltImage } from '../../src/packages/oci/write/layout.ts'
import { withValues } from '../generate/values-table.ts'
import { textOf } from '../runtime-layer.ts'

/** Where nodes pull an image, and which one: nobody can put another content there. */
export type PinnedImage = { readonly repository: string; readonly digest: string }

const helmConfigType = 'application/vnd.cncf.helm.config.v1+json'
const helmContentType = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip'

/**
 * Writes the package and returns it as an OCI artifact too, which `helm install oci://…` takes. The same chart, image
 * and home give the same bytes.
 * @param home where people find the release; a checkout knows no such address
 */
export async function writeChartPackage(
  chart: string,
  image: PinnedImage,
  file: string,
  home?: string,
): Promise<BuiltImage> {
  const read = (name: string): string => readFileSync(join(chart, name), 'utf8')
  const metadata = home === undefined ? read('Chart.yaml') : `${read('Chart.yaml')}${stringify({ home })}`
  const about = parse(metadata) as { name: string; description: string; version: string }
  const values = pinnedValues(read('values.yaml'), image)
  const changed = [
    textOf(`${about.name}/Chart.yaml`, metadata),
    textOf(`${about.name}/values.yaml`, values),
    textOf(`${about.name}/README.md`, withValues(read('README.md'), values)),
  ]
  const ignored = read('.helmignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const entries = (await readFolder(chart, about.name)).filter(({ path }) => !isIgnored(path, ignored)).map(plainMode)
  return chartArtifact(about, await writeLayer([...entries, ...changed], file))
}

/** values.yaml that names this image; all else stays, byte by byte. @throws Error where it has no such value */
export function pinnedValues(values: string, { repository, digest }: PinnedImage): string {
  const document = parseDocument(values)
  const places = Object.entries({ repository, digest }).map(([key, value]) => {
    const node = document.getIn(['image', key], true)
    if (!isScalar(node) || !node.range) throw new Error(`chart/values.yaml lacks image.${key}`)
    return { start: node.range[0], end: node.range[1], value }
  })
  places.sort((one, other) => other.start - one.start) // from the end, so that the places before stay where they are
  return places.reduce((text, { start, end, value }) => text.slice(0, start) + value + text.slice(end), values)
}

const isIgnored = (path: string, patterns: readonly string[]): boolean =>
  path.split('/').some((name) => patterns.some((pattern) => matchesGlob(name, pattern.replace(/\/$/, ''))))

/** The modes that an ordinary checkout has. */
const plainMode = (entry: LayerEntry): LayerEntry =>
  entry.kind === 'link' ? entry : { ...entry, mode: entry.kind === 'folder' ? 0o755 : 0o644 }

function chartArtifact(
  about: { readonly name: string; readonly description: string; readonly version: string },
  layer: BuiltLayer,
): BuiltImage {
  const content: Blob = {
    descriptor: { ...layer.descriptor, mediaType: helmContentType },
    content: { file: layer.file },
  }
  const config = documentBlob(helmConfigType, about)
  const manifest = documentBlob(ociManifestType, {
    schemaVersion: 2,
    mediaType: ociManifestType,
    config: config.descriptor,
    layers: [content.descriptor],
    annotations: {
      'org.opencontainers.image.title': about.name,
      'org.opencontainers.image.description': about.description,
      'org.opencontainers.image.version': about.version,
    },
  })
  return { architecture: 'unknown', manifest, blobs: [config, content] }
}

function documentBlob(mediaType: string, document: object): Blob {
  const content = Buffer.from(JSON.stringify(document))
  return { descriptor: { mediaType, digest: digestOf(content), size: content.length }, content }
}
