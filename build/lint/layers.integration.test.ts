import { execFileSync } from 'node:child_process'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { layers, rowOf } from './layers.ts'
import { lintFiles } from '../../test/kit/pages/lint-files.ts'

const repository = join(import.meta.dirname, '..', '..')
const folders = [
  ...new Set(
    execFileSync('git', ['ls-files', 'src/*.ts'], { cwd: repository, encoding: 'utf8' })
      .trim()
      .split('\n')
      .filter((file) => !file.endsWith('.test.ts'))
      .map((file) => dirname(file)),
  ),
]

const importOf = (folder: string, target: string): string =>
  `import type { X } from '${relative(folder, target).replace(/^(?!\.)/, './')}'\nexport type Y = X\n`

/** One that each folder has to refuse, and one that it has to allow. */
const samples = folders.map((folder) => ({
  folder,
  forbidden: folder.startsWith('src/daemon') ? 'src/packages/oci/write/layout.ts' : 'src/daemon/loop.ts',
  allowed: 'src/schemas/skyhook.ts',
}))

const layerFindings = (found: readonly string[] | undefined): string[] =>
  (found ?? []).filter((one) => one.startsWith('layers('))

test('every folder of src has a row in the table of layers', () => {
  expect(folders.filter((folder) => !rowOf(`${folder}/some.ts`))).toEqual([])
  const rows = Object.keys(layers).map((row) => row.replace(/\/\*\*$/, ''))
  expect(rows.filter((row) => !row.endsWith('.ts') && !folders.includes(row))).toEqual([])
})

test('every folder of src refuses an import that its row does not name and allows one that it names', () => {
  const files = samples.flatMap(({ folder, forbidden, allowed }) => [
    [`${folder}/forbidden.ts`, importOf(folder, forbidden)],
    [`${folder}/allowed.ts`, importOf(folder, allowed)],
  ])
  const found = lintFiles(Object.fromEntries(files))
  for (const { folder } of samples) {
    expect(layerFindings(found[`${folder}/forbidden.ts`]), folder).toHaveLength(1)
    expect(layerFindings(found[`${folder}/allowed.ts`]), folder).toEqual([])
  }
})

const cases: readonly [from: string, to: string, isAllowed: boolean][] = [
  ['src/stages/decide.ts', 'src/lease/rule.ts', false],
  ['src/stages/decide.ts', 'src/stages/skyhook/slot.ts', true],
  ['src/stages/skyhook/slot.ts', 'src/lease/names.ts', false],
  ['src/stages/publish/some.ts', 'src/stages/package/cancel.ts', true],
  ['src/packages/oci/read/http.ts', 'src/packages/oci/write/layer.ts', false],
  ['src/packages/oci/read/http.ts', 'src/kube/transport.ts', false],
  ['src/packages/oci/write/push.ts', 'src/packages/oci/read/registry.ts', true],
  ['src/packages/store/unpack.ts', 'src/packages/install/copy-dir.ts', false],
  ['src/host/fs/fsync.ts', 'src/host/dbus/wire.ts', false],
  ['src/host/step/start.ts', 'src/host/systemd/units.ts', true],
  ['src/lease/slots.ts', 'src/lease/rule.ts', true],
  ['src/lease/rule.ts', 'src/lease/slots.ts', false],
  ['src/census/census.ts', 'src/host/single-agent.ts', false],
  ['src/census/model/count.ts', 'src/stages/model/snapshot.ts', true],
  ['src/daemon/wire.ts', 'src/daemon/slots/slot-manager.ts', true],
  ['src/daemon/state/node.ts', 'src/daemon/slots/slot-manager.ts', false],
  ['src/daemon/wire.ts', 'test/kit/bus/fake-bus.ts', false],
  ['src/daemon/wire.test.ts', 'test/kit/bus/fake-bus.ts', true],
  ['src/unknown/some.ts', 'src/schemas/skyhook.ts', false],
]

test('an import is judged by the table in sub-folders too', () => {
  const name = (index: number): string => {
    const [from] = cases[index] as (typeof cases)[number]
    return `${index}/${from}`
  }
  const found = lintFiles(
    Object.fromEntries(cases.map(([from, to], index) => [name(index), importOf(dirname(from), to)])),
  )
  expect(cases.map(([from, to], index) => [from, to, layerFindings(found[name(index)]).length === 0])).toEqual(cases)
})

const impure: Readonly<Record<string, string>> = {
  'the clock': 'export const f = () => Date.now()',
  'the date': 'export const f = () => new Date()',
  chance: 'export const f = () => Math.random()',
  'a timer': 'export const f = () => setTimeout(() => {}, 1)',
  'a timeout': 'export const f = () => AbortSignal.timeout(1)',
  environment: 'export const f = () => process.env',
  'random bytes': "import { randomBytes } from 'node:crypto'\nexport const f = () => randomBytes(1)",
  files: "import { readFileSync } from 'node:fs'\nexport const f = () => readFileSync('/x')",
}

test.each(['src/stages/drain', 'src/schemas', 'src/lease/rule.ts'])(
  'a pure module may not use what is not in its arguments: %s',
  (place) => {
    const fileOf = (index: number): string => `${index}/${place.endsWith('.ts') ? place : `${place}/some.ts`}`
    const found = lintFiles(Object.fromEntries(Object.values(impure).map((text, index) => [fileOf(index), text])))
    for (const [index, what] of Object.keys(impure).entries())
      expect(found[fileOf(index)]?.join('\n'), what).toContain('in a pure module')
  },
)

test('a pure module may hash and may name a member like a global', () => {
  const path = 'src/stages/model/some.ts'
  const text =
    "import { createHash, hash } from 'node:crypto'\n" +
    "export const f = (x: any) => [createHash('sha256'), hash('sha256', ''), x.process]\n"
  expect(lintFiles({ [path]: text })[path]?.filter((one) => one.includes('in a pure module'))).toEqual([])
})
