import { expect, test } from 'vitest'
import { glossaryWords } from './glossary.ts'
import { lintFiles } from '../../test/kit/pages/lint-files.ts'

test('a word of the glossary is found as a part of a name only', () => {
  expect(glossaryWords('worldOf')).toEqual(['world'])
  expect(glossaryWords('HTTPTold')).toEqual(['told'])
  expect(glossaryWords('daemon/slot-news.ts')).toEqual(['news'])
  expect(['understand', 'threshold', 'swords', 'withheld', 'toldest'].flatMap(glossaryWords)).toEqual([])
})

test('names in src that use a word of the glossary fail lint', () => {
  const files = {
    'src/daemon/a.ts': 'export const worldOf = 1',
    'src/daemon/b.ts': 'export type A = { readonly trouble: string }',
    'src/daemon/c.ts': 'export class A { #patience = 1; get b() { return this.#patience } }',
    'src/daemon/slot-news.ts': 'export const a = 1',
    'src/daemon/plain.ts': "// a world of trouble\nexport const snapshot = 'a world of trouble'",
    'test/e2e/some.ts': 'export const worldOf = 1',
  }
  const count = (found: readonly string[]): number => found.filter((one) => one.startsWith('words(')).length
  const counts = Object.fromEntries(Object.entries(lintFiles(files)).map(([path, found]) => [path, count(found)]))
  expect(counts).toEqual({
    'src/daemon/a.ts': 1,
    'src/daemon/b.ts': 1,
    'src/daemon/c.ts': 2,
    'src/daemon/slot-news.ts': 1,
    'src/daemon/plain.ts': 0,
    'test/e2e/some.ts': 0,
  })
})
