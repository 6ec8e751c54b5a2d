/**
 * The chart's default objects as plain manifests, for clusters without helm. Rendering them takes helm, which is built
 * once (test/sandbox/build-binaries.sh). So what is written carries digests of its sources and of itself: stale or
 * edited manifests are found without helm. test/cluster/plain-manifests.test.ts renders again and compares.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments, stringify } from 'yaml'
import { sha256Hex } from '../../src/schemas/canonical-json.ts'

const root = join(import.meta.dirname, '..', '..')
const chart = join(root, 'chart')

/** Policies name it, so another one takes helm. */
const namespace = 'skyhook'

type KubernetesObject = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Record<string, string> }
}

/** Digest of everything that decides the manifests: the parts of the chart with its default objects, and this file. */
function sourcesDigest(): string {
  const templates = readdirSync(join(chart, 'templates'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(yaml|tpl)$/.test(name))
    .map((name) => `templates/${name}`)
  const paths = ['Chart.yaml', 'values.yaml', ...templates.sort()]
  const texts = paths.map((path) => `${path}\0${readFileSync(join(chart, path), 'utf8')}`)
  return sha256Hex([...texts, readFileSync(import.meta.filename, 'utf8')].join('\0'))
}

/** So that `helm template` prints a release with the chart's defaults, without what only helm creates: its hooks. */
export function helmArguments(): string[] {
  return ['template', 'skyhookd', chart, '--namespace', namespace, '--set', 'crds.install=false', '--no-hooks']
}

/** The file for what helm has rendered. Deterministic. */
export function plainManifests(rendered: string): string {
  const objects = parseAllDocuments(rendered)
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((object) => object !== null)
    .filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] !== 'helm-hook')
  // The agents last: what confines them is there before they are.
  const isAgent = ({ kind }: KubernetesObject): boolean => kind === 'DaemonSet'
  const ordered = [ownNamespace, ...objects.filter((one) => !isAgent(one)), ...objects.filter(isAgent)]
  const body = ordered.map((object) => `---\n${stringify(withoutHelm(object), { lineWidth: 0 })}`).join('')
  return `${header(sha256Hex(body))}${body}`
}

const ownNamespace = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: namespace, labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } },
}

/** The same without labels and annotations that only helm needs. */
function withoutHelm(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutHelm)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(
    ([key]) => !key.startsWith('helm.sh/') && key !== 'app.kubernetes.io/managed-by',
  )
  return Object.fromEntries(
    kept
      .map(([key, item]) => [key, withoutHelm(item)] as const)
      .filter(([key, item]) => key !== 'annotations' || Object.keys(item as object).length > 0),
  )
}

const header = (content: string): string => `\
# The chart's default objects for the namespace ${namespace}. Generated: make generate
# sources: sha256:${sourcesDigest()}
# below: sha256:${content}
`

/** Whether the file is what the generator would write, as far as that shows without helm. */
export function arePlainManifestsCurrent(text: string): boolean {
  const at = text.indexOf('---\n')
  return at > 0 && text.slice(0, at) === header(sha256Hex(text.slice(at)))
}

/** The manifests, rendered with helm; minutes where that has to be built. */
export function renderPlainManifests(): string {
  const folder = execFileSync(join(root, 'test/sandbox/build-binaries.sh'), ['--helm'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim()
  return plainManifests(execFileSync(join(folder, 'helm'), helmArguments(), { encoding: 'utf8', maxBuffer: 2 ** 24 }))
}
