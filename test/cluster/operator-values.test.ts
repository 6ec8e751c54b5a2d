/** Values that were written for the Skyhook operator's chart, given to this one. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { chart, helmProgram, type Json } from './chart-cluster.ts'

let helm: (...parameters: string[]) => Promise<string>
let folder: string
beforeAll(async () => {
  helm = await helmProgram()
  folder = await mkdtemp(join(tmpdir(), 'skyhookd-values-'))
})
afterAll(async () => await rm(folder, { recursive: true }))

async function withValues(command: readonly string[], values: Json): Promise<string> {
  const file = join(folder, 'values.yaml')
  await writeFile(file, JSON.stringify(values))
  return await helm(...command, 'skyhookd', chart, '--namespace', 'skyhook', '-f', file)
}
const render = async (values: Json): Promise<string> => await withValues(['template'], values)
const notes = async (values: Json): Promise<string> =>
  (await withValues(['install', '--dry-run=client'], values)).replace(/^[\s\S]*\nNOTES:\n/, '')

/** The ConfigMap that the agents read. */
async function settings(values: Json): Promise<Json> {
  const objects = parseAllDocuments(await render(values)).map((document) => document.toJS() as Json | null)
  const found = objects.find((one) => one?.['kind'] === 'ConfigMap' && (one['metadata'] as Json)['name'] === 'skyhookd')
  return JSON.parse((found as { data: Record<string, string> }).data['settings.json'] ?? '') as Json
}
const operatorEnv = (env: Json): Json => ({ controllerManager: { manager: { env } } })

/** As helm writes them when somebody asks the operator's release for its values. */
const hostValues = {
  copyDirRoot: '/opt/skyhook',
  agentLogRoot: '/opt/logs',
  runtimeRequiredTaint: 'example.com/new=yes:NoExecute',
  reapplyOnReboot: 'true',
  logLevel: 'debug',
}

test("the operator's settings of hosts are those of the agents", async () => {
  expect(await settings(operatorEnv(hostValues))).toMatchObject({ ...hostValues, reapplyOnReboot: true })
  expect(await settings(operatorEnv({ reapplyOnReboot: 'false' }))).toMatchObject({ reapplyOnReboot: false })
})

test("the operator's taint is the one that the policies let agents remove", async () => {
  expect(await render(operatorEnv(hostValues))).toContain("t.key != 'example.com/new'")
})

test("the operator's values without a counterpart change no object", async () => {
  expect(await render(await withoutEffect())).toBe(await render({}))
})

test("the notes name each of the operator's values that is given, and no other", async () => {
  expect(await notes({})).not.toMatch(/operator|no effect/)
  const ignored = await namesInReadme('no effect')
  const noted = [...(await notes(await withoutEffect())).matchAll(/^ {4}(\S+) has no effect: /gm)]
  expect(new Set(noted.map(([, name]) => name))).toEqual(new Set(ignored))
  const taken = [...(await notes(operatorEnv(hostValues))).matchAll(/^ {4}(\S+) is taken as (\S+)$/gm)]
  expect(taken.map(([, from, to]) => [from, to])).toEqual(
    Object.keys(hostValues)
      .toSorted()
      .map((name) => [`controllerManager.manager.env.${name}`, name]),
  )
})

test("a misspelt value of the operator's is refused", async () => {
  await expect(render(operatorEnv({ logLevle: 'debug' }))).rejects.toThrow(/logLevle/)
})

/** Names in the table of chart/README.md whose row says this. */
async function namesInReadme(what: string): Promise<string[]> {
  const rows = (await readFile(join(chart, 'README.md'), 'utf8')).split('\n').filter((line) => line.startsWith('| `'))
  return rows
    .filter((row) => row.includes(`| ${what}`))
    .flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name))
}

/** Each value that the README says to have no effect. */
async function withoutEffect(): Promise<Json> {
  const values: Json = {}
  for (const name of await namesInReadme('no effect')) {
    const path = name.split('.')
    let place = values
    for (const part of path.slice(0, -1)) place = (place[part] ??= {}) as Json
    place[path.at(-1) ?? ''] = { given: true }
  }
  return values
}
