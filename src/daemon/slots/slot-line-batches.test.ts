/** Under a DeploymentPolicy, the open batch has places for a number of nodes. The next batch opens when it ends. */
import { expect, test } from 'vitest'
import {
  batched,
  batchScope,
  batchSlot,
  batchSlotAt,
  controlPlaneSlot,
  createSlotLineScene,
  full,
  lost,
  uidAt,
} from '../../../test/kit/slots/slot-line-scene.ts'

/** A node at this place among a thousand. */
const sceneAt = (place: number) => createSlotLineScene({ agents: 1_000, nodeUid: uidAt(place), view: batched() })

test.each([
  ['the open batch', 0.12, 0],
  ['the next batch', 0.18, 0],
  ['a later batch', 0.25, 1],
])('a node of %s: at %d of a thousand, 64 of whom are out', async (_, place, distant) => {
  const { line, count, askByCount } = await sceneAt(place + 0.064)
  await count(1_000, 936, 64)
  await askByCount()
  expect(line.distant().size).toBe(distant)
})

test('a node asks when the next batch opens, which has places for more nodes', async () => {
  const { clock, take, count, deny, turns } = await createSlotLineScene({ agents: 12, view: batched() })
  await take(batchSlot)
  await count(12, 11, 1)
  await deny(batchScope)
  await clock.advance(10_000)
  expect(turns).toEqual([])
  await count(12, 11, 2)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})

test('a node in line for the next batch sees in one watch that it opens, and asks', async () => {
  const { clock, take, count, askByCount, requests, turns } = await sceneAt(0.1)
  for (let index = 0; index < 64; index++) await take(batchSlotAt(index))
  await count(1_000, 1_000, 64)
  await askByCount()
  requests()
  turns.length = 0
  await count(1_000, 936, 128)
  await clock.advance(2_000)
  expect([requests(), turns.length]).toEqual([['watch'], 1]) // of other indices, because there are more
})

test('a node that waits for the slot of the control plane does not ask for places of the batch', async () => {
  const { clock, line, view, take, count, list, turns } = await createSlotLineScene({ agents: 12, view: batched() })
  await take(controlPlaneSlot)
  await count(12, 11, 1)
  line.afterDenial(view(), full(await list()), 'control-plane')
  await clock.advance(1_000)
  await count(12, 11, 8)
  await clock.advance(1_000)
  expect(turns).toEqual([])
})

test('a node does not ask for the only place of a batch once another node has it', async () => {
  const { clock, take, release, count, deny, turns } = await createSlotLineScene({ agents: 30, view: batched() })
  await take(batchSlot)
  await count(30, 29, 1)
  await deny(batchScope)
  await clock.advance(1_000)
  await count(30, 30, 1)
  await release(batchSlot)
  await clock.advance(1)
  await take(batchSlot)
  await clock.advance(10_000)
  expect(turns).toEqual([])
})

test('A node that was beaten to the only place of a batch asks when a larger batch opens.', async () => {
  const { clock, line, view, take, count, beginRequest, turns } = await createSlotLineScene({
    agents: 12,
    view: batched(),
  })
  await count(12, 12, 1)
  const listing = await beginRequest(batchScope)
  await take(batchSlot)
  line.afterDenial(view(), lost(batchSlot, listing), 'slot')
  await clock.advance(1_000)
  turns.length = 0
  await count(12, 11, 4)
  await clock.advance(1_000)
  expect(turns).toHaveLength(1)
})
