import { expect, test } from 'vitest'
import { effectsOf, hostileTexts } from '../../../test/kit/objects/hostile-texts.ts'
import { createLogTo } from './log.ts'

test.each(Object.entries(hostileTexts))('a line of the log is bounded and without effect: %s', (_, text) => {
  const lines: string[] = []
  const log = createLogTo((line) => void lines.push(line), 'info', { node: 'n' })
  const short = text.slice(0, 1_000)
  log.info({ detail: text, short }, short)
  const [line = ''] = lines
  expect(lines).toHaveLength(1)
  expect(effectsOf(line)).toEqual([])
  expect(line.length).toBeLessThan(64 * 1024)
  expect(JSON.parse(line)).toMatchObject({ node: 'n', short, message: short })
})
