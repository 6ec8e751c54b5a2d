import { expect, test } from 'vitest'
import { stateAfterRemedy } from './broken-scene.ts'
import { podRows } from './pod-rows.ts'
import { slotRows } from './slot-rows.ts'

test.each([...slotRows, ...podRows])(
  '$title is named first, nothing else is blamed, and what is printed leads to progress',
  async (situation) => {
    expect(await stateAfterRemedy(situation)).toMatch(/complete|mended/)
  },
)
