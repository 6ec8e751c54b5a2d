import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { addOpenSeed, isOpen, readOpenSeeds } from './open-seeds.ts'

const violation = (rule: string) => ({ rule, message: 'why', atMs: 1 })

test.each<[string, string, string | undefined, boolean]>([
  ['breaks the same rule without the change is open', 'budget', 'budget', true],
  ['passes without the change is a fault of the change', 'budget', undefined, false],
  ['breaks another rule without the change is a fault of the change', 'budget', 'settles', false],
  [
    'ends its process with and without the change is a fault of the change',
    'simulation-lives',
    'simulation-lives',
    false,
  ],
])('a seed that %s', (_, now, before, expected) => {
  expect(isOpen(violation(now), before === undefined ? undefined : violation(before))).toBe(expected)
})

test('the list of open seeds is ascending and has each seed once', () => {
  const folder = mkdtempSync(join(tmpdir(), 'open-seeds-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'open-seeds.json')
  writeFileSync(file, '[]\n')
  for (const seed of [20_007, 9, 9]) addOpenSeed({ seed, rule: 'budget', about: `of ${seed}` }, file)
  addOpenSeed({ seed: 9, rule: 'settles', about: 'later' }, file)
  expect(readOpenSeeds(file)).toEqual([
    { seed: 9, rule: 'budget', about: 'of 9' },
    { seed: 20_007, rule: 'budget', about: 'of 20007' },
  ])
})

test('the committed list has seeds with a rule', () => {
  for (const open of readOpenSeeds())
    expect(open).toEqual({ seed: expect.any(Number), rule: expect.any(String), about: expect.any(String) })
})
