import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from './files/temporary-folder.ts'
import { addOpenSeed, isOpen, type OpenSeed, readOpenSeeds } from './open-seeds.ts'

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
  expect(isOpen(now, before)).toBe(expected)
})

test('the list of open seeds is in order and has each seed of fleets and of a search once', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'open-seeds.json')
  writeFileSync(file, '[]\n')
  const open = (seed: number, of: OpenSeed['of'], rule = 'budget'): OpenSeed => ({ seed, of, rule, about: 'why' })
  const search = 'test/model/waits.test.ts'
  for (const one of [open(9, search), open(20_007, 'fleets'), open(9, 'fleets'), open(9, 'fleets', 'settles')])
    addOpenSeed(one, file)
  expect(readOpenSeeds(file)).toEqual([open(9, 'fleets'), open(20_007, 'fleets'), open(9, search)])
})

test('the committed list has seeds with a rule', () => {
  const text: unknown = expect.any(String)
  for (const open of readOpenSeeds())
    expect(open).toEqual({ seed: expect.any(Number), of: text, rule: text, about: text })
})
