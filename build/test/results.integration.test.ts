import { writeFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { join, relative } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { temporaryFolder } from '../../test/kit/files/temporary-folder.ts'
import { collectResults, type Results } from './results.ts'

const root = join(import.meta.dirname, '../..')

function start(): { readonly folder: string; readonly results: Results; readonly printed: () => string } {
  const folder = temporaryFolder()
  const lines: string[] = []
  const log = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(`${line}\n`))
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => lines.push(String(chunk)) > 0)
  onTestFinished(() => {
    log.mockRestore()
    write.mockRestore()
  })
  return { folder, results: collectResults(folder), printed: () => lines.join('') }
}

/** Its path from the root, as a campaign is named. */
function program(folder: string, text: string): string {
  const file = join(folder, 'program.mjs')
  writeFileSync(file, text)
  return relative(root, file)
}

/** Without where the time went. */
function closing(results: Results): { readonly text: string; readonly isGood: boolean } {
  const { text, isGood } = results.summary()
  return { text: text.replace(/^[^]*? min {2}.*\n(?! )/, ''), isGood }
}

test('a check that fails is named at the end, and its output is shown', async () => {
  const { results, printed } = start()
  await results.lane({ isFollowed: true }).check('good', ['sh', '-c', 'echo quiet'])
  await results.lane({ isFollowed: true }).check('bad', ['sh', '-c', 'echo loud >&2; exit 3'])
  expect(printed()).toMatch(/^ok: good \(\S+ s\)\nloud\nfailed: bad \(\S+ s\)\n$/)
  expect(closing(results)).toEqual({ text: 'failed: bad\n1 passed, 1 failed', isGood: false })
})

test('a program that does not exist is a failure that says so', async () => {
  const { results, printed } = start()
  await results.lane({ isFollowed: true }).check('missing', ['/nonexistent/program'])
  expect(printed()).toContain('ENOENT')
  expect(closing(results).text).toBe('failed: missing\n0 passed, 1 failed')
})

test('the counts of a campaign are added', async () => {
  const { folder, results } = start()
  const path = program(folder, 'console.log("3 passed, 0 failed")')
  await results.lane({ nice: 19 }).campaign(path)
  await results.lane({ isFollowed: true }).campaign(path)
  expect(closing(results)).toEqual({ text: '6 passed, 0 failed', isGood: true })
})

test('a campaign that fails is named with the commands that repeat its failures', async () => {
  const { folder, results } = start()
  const lines = ['again: make fleet SEED=7', 'again: make fleet SEED=7', '0 passed, 1 failed']
  const path = program(folder, `console.log(${JSON.stringify(lines.join('\n'))})`)
  await results.lane().campaign(path)
  expect(closing(results).text).toBe(`failed: ${path} \n    make fleet SEED=7\n0 passed, 1 failed`)
})

test('a campaign that ends without its counts is one failure', async () => {
  const { folder, results } = start()
  const path = program(folder, 'console.log("seed 7"); process.exit(1)')
  await results.lane({ nice: 19 }).campaign(path, '--seeds', '9')
  expect(closing(results).text).toBe(`failed: ${path} --seeds 9\n    seed 7\n0 passed, 1 failed`)
})

test('a lane that nobody follows has the priority it was given, and prints a part when it has ended', async () => {
  const { folder, results, printed } = start()
  const path = program(
    folder,
    'console.log((await import("node:os")).getPriority()); console.log("1 passed, 0 failed")',
  )
  const running = results.lane({ nice: 19 }).campaign(path)
  expect(printed()).toBe('')
  await running
  expect(printed()).toMatch(new RegExp(`^${Math.min(19, getPriority() + 19)}\\n1 passed, 0 failed\\nended: `))
})

test('the summary says where the time went: phases, files and boots of sandboxes', async () => {
  const { results } = start()
  await results.lane().check('good', ['sh', '-c', 'true'])
  expect(results.summary('one 3 12\ntwo 1 18\n').text).toMatch(
    /^minutes per phase.*:\n +0\.0 min {2}good\nboots of sandboxes:\n {2}2 in 0\.5 min, each 12 to 18 s\n1 passed, 0 failed$/,
  )
})
