/** The example of an overlay for the plain manifests, as kustomize builds it, without an API server. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { readSettings } from '../../src/daemon/settings/settings.ts'
import { settingKeys } from '../../src/schemas/setting-keys.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..', '..')

type Built = {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: { readonly template?: { readonly spec: object; readonly metadata: object } }
}
let plain: readonly Built[]
let overlaid: readonly Built[]
let folder: string

beforeAll(async () => {
  const bin = (await run(join(root, 'test/sandbox/build-binaries.sh'))).stdout.trim()
  const build = async (name: string): Promise<readonly Built[]> => {
    const { stdout } = await run(join(bin, 'kubectl'), ['kustomize', join(root, name)], { maxBuffer: 2 ** 24 })
    return parseAllDocuments(stdout).map((document) => document.toJS() as Built)
  }
  plain = await build('daemonset')
  overlaid = await build('overlay')
  folder = await mkdtemp(join(tmpdir(), 'skyhookd-overlay-'))
})
afterAll(async () => await rm(folder, { recursive: true }))

const settingsOf = (objects: readonly Built[]): Readonly<Record<string, string>> =>
  objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'skyhookd')?.data ?? {}

test('the overlay changes settings and agents, and no other object', () => {
  const others = (objects: readonly Built[]) => objects.filter(({ kind }) => !/^(ConfigMap|DaemonSet)$/.test(kind))
  expect(others(overlaid)).toEqual(others(plain))
  expect(Object.keys(settingsOf(overlaid)).toSorted()).toEqual(settingKeys.toSorted())
})

test('the agent reads what the overlay sets, and the other settings stay as they are', async () => {
  for (const [key, text] of Object.entries(settingsOf(overlaid))) await writeFile(join(folder, key), text)
  expect(readSettings({ NODE_NAME: 'n', POD_NAME: 'p', POD_NAMESPACE: 'skyhook' }, folder)).toMatchObject({
    imagePullSecrets: ['registry-credentials'],
    defaultBudget: { count: 1 },
    estimatedNodeCount: 100,
  })
})

test('the kubelet pulls the image of the agent with the Secret of the overlay', () => {
  const agents = overlaid.find(({ kind }) => kind === 'DaemonSet')?.spec?.template
  expect(agents?.spec).toMatchObject({ imagePullSecrets: [{ name: 'registry-credentials' }] })
  expect(agents?.metadata).toMatchObject({ annotations: { 'settings-revision': '1' } })
})
