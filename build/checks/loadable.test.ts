import { expect, test } from 'vitest'
import { repositoryOf } from '../../test/kit/pages/repository-of.ts'
import { unloadableFiles } from './loadable.ts'

test.each([
  ['an enumeration', 'enum Mode { apply }'],
  ['a parameter property', 'class Host { constructor(readonly name: string) {} }'],
  ['a loop over `of`', 'for (const of of [1]) console.log(of)'],
])('a check finds %s, which Node.js does not load', (_, text) => {
  const found = unloadableFiles(repositoryOf({ 'test/e2e/some.test.ts': text, 'src/a.ts': 'export type A = string' }))
  expect(found).toEqual([expect.stringContaining('test/e2e/some.test.ts: Node.js cannot load it: ')])
})
