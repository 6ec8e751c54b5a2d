import { describe, expect, test } from 'vitest'
import { medianOf, parseRollup } from './memory.ts'

/** From an agent whose image was just unpacked: the program's pages are dirty but belong to the page cache. */
const afterUnpackRollup = `55d0c7e00000-7ffc2b5fe000 ---p 00000000 00:00 0                          [rollup]
Rss:               68608 kB
Pss:               68100 kB
Pss_Dirty:         67584 kB
Pss_Anon:          20480 kB
Private_Clean:      1024 kB
Private_Dirty:     67584 kB
Referenced:        68608 kB
Anonymous:         20480 kB
AnonHugePages:         0 kB
`

describe('memory of a process', () => {
  test('memory of a process counts as private without dirty pages of files', () => {
    expect(parseRollup(afterUnpackRollup)).toEqual({ rssMiB: 67, privateMiB: 20 })
  })

  test('memory is not guessed where the kernel reports none', () => {
    expect(() => parseRollup('Rss: 10 kB\n')).toThrow('no Anonymous in smaps_rollup')
  })
})

test('the median of an even number of values lies between the two in the middle', () => {
  expect([medianOf([3, 1, 2]), medianOf([4, 1, 2, 3])]).toEqual([2, 2.5])
})
