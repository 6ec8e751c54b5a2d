import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../test/kit/files/temporary-folder.ts'
import { passedIn } from './campaigns.ts'

test('a name that passed is known to the next run, once', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'sample')
  const first = passedIn(file)
  expect([first.names(), first.total()]).toEqual([[], undefined])
  for (const name of ['service, power cut at fsync:journal#2', 'b', 'b']) first.add(name)
  first.setTotal(3)
  const next = passedIn(file)
  expect([next.names(), next.total()]).toEqual([['service, power cut at fsync:journal#2', 'b'], 3])
  expect([next.has('b'), next.has('c')]).toEqual([true, false])
})
