import { expect, test } from 'vitest'
import { checkFleet } from '../../bench/fleet/check-fleet.ts'

test('a rollout on twenty agents costs the API server no more than the committed figures say', async () => {
  const { regressions, report } = await checkFleet(() => undefined)
  expect(regressions, report).toEqual([])
})
