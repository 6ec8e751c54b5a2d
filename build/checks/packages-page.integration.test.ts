/** Every command and every example of docs/usage/packages.md that needs neither a cluster nor a host. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packageRun } from '../../src/cli/commands/package.ts'
import { type FakeRegistry, startFakeRegistry } from '../../test/kit/registry/fake-registry.ts'
import { commandsOn, filesOn, writeFilesOf } from '../../test/kit/pages/page-examples.ts'
import { runTool, type ToolRun } from '../../test/kit/tool/run-tool.ts'

const page = 'usage/packages.md'
const folder = mkdtempSync(join(tmpdir(), 'packages-page-'))
let registry: FakeRegistry

beforeAll(async () => {
  registry = await startFakeRegistry()
  writeFilesOf(page, folder)
})
afterAll(async () => {
  await registry?.close()
  rmSync(folder, { recursive: true })
})

/** A line of the page, run in the folder, with a registry of the test's own. */
async function run(line: string): Promise<ToolRun> {
  const [, text = '', file = ''] = /^echo (.*) >(.*)$/.exec(line) ?? []
  if (file !== '') {
    writeFileSync(join(folder, file), `${text}\n`)
    return { code: 0, stdout: '', stderr: '' }
  }
  const words = line.replace('registry.example.com', registry.host).split(' ').slice(2)
  const before = process.cwd()
  process.chdir(folder)
  try {
    return await runTool(words[1] === 'push' ? [...words, '--plain-http'] : words)
  } finally {
    process.chdir(before)
  }
}

const isElsewhere = (line: string): boolean => /^(?:sudo|docker|kubectl apply) /.test(line)

test('every command of the page on packages runs, in the order of the page', async () => {
  const lines = commandsOn(page).filter((line) => !isElsewhere(line))
  expect(lines.length).toBeGreaterThan(5)
  for (const line of lines) expect({ line, ...(await run(line)) }).toMatchObject({ line, code: 0, stderr: '' })
  expect(registry.manifest('packages/my-tuning', '1.0.0')).toBeDefined()
  const [apply = ''] = commandsOn(page).filter((line) => line.startsWith('kubectl apply'))
  expect((await run(`kubectl skyhook validate ${apply.split(' ').at(-1)}`)).code).toBe(0)
})

test('the example package and its Skyhook have neither errors nor warnings', async () => {
  const { stdout } = await run('kubectl skyhook validate banner banner.yaml')
  expect(stdout).toBe('banner: package is valid\nbanner.yaml: Skyhook banner is valid\n')
})

test('the page takes on hosts the packages that test/host/package-run.test.ts takes there', () => {
  const lines = commandsOn(page).filter((line) => line.startsWith('sudo '))
  expect(lines).toEqual([`sudo ${packageRun.example}`, expect.stringContaining('package run banner ')])
})

test('the Dockerfile of the page is that of the shipped packages, which test/release/dockerfiles.test.ts builds', () => {
  const shipped = readFileSync(join(import.meta.dirname, '../../packages/tuning/Dockerfile'), 'utf8')
  const lines = shipped.split('\n').filter((line) => !line.startsWith('#'))
  const expected = lines
    .join('\n')
    .replace('"tuning"', '"banner"')
    .replace(/version="[\d.]+"/, 'version="1.1.0"')
  expect(filesOn(page).get('banner/Dockerfile')).toBe(expected)
})
