/**
 * The chart's default objects as plain manifests, for clusters without helm: daemonset/skyhookd.yaml.
 * `node build/generate/plain-manifests.ts` renders them with helm, which it builds once (test/sandbox/build-binaries.sh). What
 * it writes carries digests of the chart's sources and of itself, so that the unit test beside this file finds it stale
 * or edited without helm; test/cluster/plain-manifests.test.ts renders again and compares.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments, stringify } from 'yaml'
import { sha256Hex } from '../../src/schemas/canonical-json.ts'

const root = join(import.meta.dirname, '..', '..')
const chart = join(root, 'chart')

export const manifestsFile = join(root, 'daemonset', 'skyhookd.yaml')
/** Policies name it, so another one takes helm. */
const namespace = 'skyhook'

type KubernetesObject = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Record<string, string> }
}

/** Digest of everything in the chart that decides its default objects. */
export function chartDigest(): string {
  const templates = readdirSync(join(chart, 'templates'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(yaml|tpl)$/.test(name))
    .map((name) => `templates/${name}`)
  const paths = ['Chart.yaml', 'values.yaml', ...templates.sort()]
  return sha256Hex(paths.map((path) => `${path}\0${readFileSync(join(chart, path), 'utf8')}`).join('\0'))
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
  return `${header(chartDigest(), sha256Hex(body))}${body}`
}

const ownNamespace = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: namespace, labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } },
}

/** Labels by which helm finds its own objects. */
function withoutHelm(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutHelm)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(
    ([key]) => key !== 'helm.sh/chart' && key !== 'app.kubernetes.io/managed-by',
  )
  return Object.fromEntries(kept.map(([key, item]) => [key, withoutHelm(item)]))
}

const header = (sources: string, content: string): string => `\
# The chart's default objects for the namespace ${namespace}. Generated: node build/generate/plain-manifests.ts
# chart: sha256:${sources}
# below: sha256:${content}
`

/** Why the file is not what the generator would write; empty if it is, as far as that shows without helm. */
export function manifestProblems(text: string): string[] {
  const at = text.indexOf('---\n')
  const expected = header(chartDigest(), sha256Hex(text.slice(at)))
  if (text.slice(0, at) === expected) return []
  const isStale = !text.includes(`# chart: sha256:${chartDigest()}\n`)
  const why = isStale ? 'the chart has changed' : 'somebody edited it'
  return [`daemonset/skyhookd.yaml: ${why}; run node build/generate/plain-manifests.ts`]
}

if (import.meta.main) {
  const folder = execFileSync(join(root, 'test/sandbox/build-binaries.sh'), {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim()
  const rendered = execFileSync(join(folder, 'helm'), helmArguments(), { encoding: 'utf8', maxBuffer: 2 ** 24 })
  writeFileSync(manifestsFile, plainManifests(rendered))
}
