import { expect, test } from 'vitest'
import { stateAfterRemedy } from './broken-scene.ts'
import { imageRows } from './image-rows.ts'
import { specRows, workRows } from './package-rows.ts'

test.each([...imageRows, ...workRows, ...specRows])(
  '$title is named first, nothing else is blamed, and what is printed leads to progress',
  async (situation) => {
    expect(await stateAfterRemedy(situation)).toMatch(/complete|mended/)
  },
)
