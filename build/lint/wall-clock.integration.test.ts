import { expect, test } from 'vitest'
import { lintFiles } from '../../test/kit/pages/lint-files.ts'

const deadline = 'export const f = (clock: { wallMs(): number }) => clock.wallMs() + 1_000'

const count = (found: readonly string[] | undefined): number =>
  (found ?? []).filter((one) => one.startsWith('wall-clock(')).length

test('the wall clock is refused where nothing is published, and allowed in publishers and tests', () => {
  const found = lintFiles({
    'src/daemon/some.ts': deadline,
    'src/kube/events.ts': deadline,
    'src/daemon/some.test.ts': deadline,
    'src/daemon/steady.ts': 'export const f = (clock: { steadyMs(): number }) => clock.steadyMs() + 1_000',
  })
  expect(Object.values(found).map(count)).toEqual([1, 0, 0, 0])
})
