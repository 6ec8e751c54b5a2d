/** Every generated file of the repository, with what it is generated from. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { dashboard } from '../dashboard/dashboard.ts'
import { pages, withTables } from './catalogue-tables.ts'
import { dashboardPage } from './dashboard-page.ts'
import { definitionTypes } from './definition-types.ts'
import { definitionFiles, definitionsOfFiles } from './definitions.ts'
import { messagesList } from './messages.ts'
import { arePlainManifestsCurrent, renderPlainManifests } from './plain-manifests.ts'
import { withExamples } from './readme-examples.ts'
import { referenceText } from './skyhook-reference.ts'
import { validatorSource } from './validators.ts'
import { withValues } from './values-table.ts'

export type GeneratedFile = {
  /** From the root of the repository. */
  readonly path: string
  /** What the file has to hold, before it is formatted. `committed` is what it holds: some pages keep their prose. */
  readonly text: (committed: string) => string | Promise<string>
  /** Where `text` takes long: whether it would give what is committed. */
  readonly isCurrent?: (committed: string) => boolean
}

const root = join(import.meta.dirname, '..', '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
/** Of the product, without what is generated itself. */
const sources = (): { readonly path: string; readonly text: string }[] =>
  readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !/\.test\.ts$|\bgenerated\b/.test(path))
    .toSorted()
    .map((path) => ({ path: `src/${path}`, text: read(`src/${path}`) }))
const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

export const generatedFiles = (): readonly GeneratedFile[] => [
  // helm reads no file outside a chart
  ...definitionFiles().map((name) => ({
    path: `chart/crd-files/${name}`,
    text: () => read(`crds/${name}`),
  })),
  { path: 'README.md', text: withExamples },
  { path: 'chart/README.md', text: (committed) => withValues(committed, read('chart/values.yaml')) },
  { path: 'chart/monitoring/dashboard.json', text: () => json(dashboard()) },
  { path: 'daemonset/skyhookd.yaml', text: renderPlainManifests, isCurrent: arePlainManifestsCurrent },
  ...pages.map((page) => ({
    path: `docs/usage/${page}`,
    text: (committed: string) => withTables(page, committed),
  })),
  { path: 'docs/usage/messages.txt', text: () => messagesList(sources()) },
  { path: 'docs/usage/skyhook-reference.md', text: referenceText },
  { path: 'src/cli/dashboard/generated/page.json', text: async () => json(await dashboardPage()) },
  { path: 'src/cli/validate/generated/definitions.json', text: () => json(definitionsOfFiles()) },
  { path: 'src/schemas/generated/definitions.ts', text: definitionTypes },
  {
    path: 'src/schemas/generated/package-config-validator.ts',
    text: () => validatorSource('package-config.v1.schema.json', 'validatePackageConfig'),
  },
]
