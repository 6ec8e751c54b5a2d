import { expect, test } from 'vitest'
import { stateAfterRemedy } from './broken-scene.ts'
import { nodeRows, settingRows } from './node-rows.ts'

test.each([...settingRows, ...nodeRows])(
  '$title is named first, nothing else is blamed, and what is printed leads to progress',
  async (situation) => {
    expect(await stateAfterRemedy(situation)).toMatch(/complete|mended/)
  },
)
