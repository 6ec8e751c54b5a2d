import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { openRecord, rangesOf } from './record.ts'

const passed = { virtualMs: 600_000, steps: 10, checks: { budget: 3 }, met: [{ kind: 'host-crashed' }] }
const failed = { ...passed, violation: { rule: 'budget', message: '', atMs: 1 } }

let file: string
beforeEach(async () => {
  file = join(await mkdtemp(join(tmpdir(), 'record-')), 'record.json')
})

test('a campaign goes on where the one before ended, with its counts', async () => {
  const first = await openRecord(file)
  for (const seed of [1, 2, 4]) first.add(seed, passed as never)
  first.add(3, failed as never)
  await first.end()
  const second = await openRecord(file)
  expect([1, 2, 3, 4, 5].filter((seed) => second.has(seed))).toEqual([1, 2, 4])
  second.add(3, passed as never)
  await second.end()
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({
    passed: [[1, 4]],
    counts: { runs: 4, virtualMs: 2_400_000, steps: 40, met: { 'host-crashed': 4 }, checks: { budget: 12 } },
  })
})

test('a file that is something else is not overwritten', async () => {
  await writeFile(file, '{"kind": "List"}')
  await expect(openRecord(file)).rejects.toThrow(`${file} is no record of a campaign`)
  await writeFile(file, 'a text')
  await expect(openRecord(file)).rejects.toThrow(`${file} is no record of a campaign`)
})

test.each<[string, number[], [number, number][]]>([
  ['nothing', [], []],
  ['one seed', [7], [[7, 7]]],
  [
    'seeds in any order',
    [3, 1, 2, 9, 8, 5],
    [
      [1, 3],
      [5, 5],
      [8, 9],
    ],
  ],
  ['a seed twice', [1, 1, 2], [[1, 2]]],
])('ranges of %s are ascending and do not touch', (_, seeds, ranges) => {
  expect(rangesOf(seeds)).toEqual(ranges)
})
