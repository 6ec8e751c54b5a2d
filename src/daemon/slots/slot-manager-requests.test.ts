/** Requests for a slot, and the effect of their answers on the next request. */
import { describe, expect, test } from 'vitest'
import { leasesPath } from '../../../test/kit/api-server/sample-server.ts'
import {
  heldBy,
  isHolding,
  startSlotManagerScene,
  type TestedManager,
} from '../../../test/kit/slots/slot-manager-scene.ts'

test('a node without a Node object requests nothing', async () => {
  const { api, first, putSkyhook, putNode } = await startSlotManagerScene()
  const view = putSkyhook()
  putNode('n1', undefined)
  const requestCount = api.sent.length
  await expect(first.acquire(view, 'cordoning', false)).rejects.toThrow('no Node with this name')
  expect(api.sent).toHaveLength(requestCount)
})

test('a granted slot is held unconfirmed, and the wait is measured from the first denial', async () => {
  const { clock, first, second, putSkyhook, acquired, released } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  expect(heldBy(first)).toMatchObject({ skyhook: 's', skyhookUid: view.metadata.uid, ownership: 'owned' })
  expect(acquired).toEqual([0])
  await second.acquire(view, 'cordoning', false)
  expect(second.denials().get('s')).toMatchObject({
    message: 'the budget of 1 node is used up',
    sinceMs: clock.steadyMs(),
    nextRequestAtMs: clock.steadyMs() + 1_800_000,
  })
  await clock.advance(7_000)
  await first.release(heldBy(first))
  await second.acquire(view, 'cordoning', false)
  expect([isHolding(first), isHolding(second), second.denials().size]).toEqual([false, true, 0])
  expect(acquired).toEqual([0, 7])
  expect(released).toEqual(['cordoning 7'])
})

test('a Skyhook that asks for no slot any more does not wait', async () => {
  const { api, first, second, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await second.acquire(view, 'cordoning', false)
  const isFollowed = (): boolean => api.server.openWatches() > 2 // requests about own slots
  await api.eventually(() => expect(isFollowed()).toBe(true))
  second.keepWaiting(new Set(['s']))
  expect([second.denials().size, isFollowed()]).toEqual([1, true])
  second.keepWaiting(new Set())
  expect(second.denials().size).toBe(0)
  await api.eventually(() => expect(isFollowed()).toBe(false))
})

test('a freed slot makes only a waiting Skyhook ask at once', async () => {
  const { first, second, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await second.acquire(view, 'cordoning', false)
  expect([first.requestNow('s'), second.requestNow('s')]).toEqual([false, true])
  expect(second.denials().get('s')?.nextRequestAtMs).toBe(0)
})

test('a slot that another node took first is waited for like others', async () => {
  const { api, clock, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook({ interruptionBudget: { count: 2 } })
  api.fault(({ method, path }) => method === 'POST' && path === leasesPath, {
    kind: 'refuse',
    code: 409,
    reason: 'AlreadyExists',
  })
  await first.acquire(view, 'cordoning', false)
  expect(first.denials().get('s')).toMatchObject({
    message: 'other nodes request slots at the same time',
    nextRequestAtMs: clock.steadyMs() + 1_800_000,
  })
})

test('a slot that the API server rejects is a denial with its answer, repeated after growing pauses', async () => {
  const { api, clock, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  api.fault(({ method }) => method === 'POST', { kind: 'refuse', code: 403, reason: 'Forbidden' }, 3)
  for (const longestMs of [1_000, 2_000, 4_000]) {
    await first.acquire(view, 'working', false)
    const { message = '', nextRequestAtMs = 0 } = first.denials().get('s') ?? {}
    expect(message).toContain('the API server rejected the slot')
    const pauseMs = nextRequestAtMs - clock.steadyMs()
    expect([pauseMs <= longestMs, pauseMs >= 0.8 * longestMs]).toEqual([true, true])
  }
  await first.acquire(view, 'working', false)
  expect(isHolding(first)).toBe(true)
})

test('a request without an answer fails and is not denied', async () => {
  const { api, first, putSkyhook } = await startSlotManagerScene()
  const view = putSkyhook()
  api.fault(({ path }) => path === leasesPath, { kind: 'lose-request' }, 10)
  await expect(first.acquire(view, 'cordoning', false)).rejects.toThrow('it is unknown whether a slot was granted')
  expect(first.denials().size).toBe(0)
})

describe('a request for an index that the budget does not have any more', () => {
  /** `asking` requests the second of two slots, and the API server answers with this status. */
  async function startWithRequestAnswered(status: number) {
    const scene = await startSlotManagerScene()
    const { api, putSkyhook, readyManagerOf, requestedLeases } = scene
    const view = putSkyhook({ interruptionBudget: { count: 2 } })
    api.fault(({ method }) => method === 'POST', { kind: 'refuse', code: status }, 1)
    const asking: TestedManager = await readyManagerOf('n3') // chooses the second by the hash of its uid
    await expect(asking.acquire(view, 'cordoning', false)).rejects.toThrow('it is unknown whether a slot was granted')
    expect(requestedLeases()).toMatchObject([{ name: expect.stringMatching(/slot-1$/) }])
    return { ...scene, asking }
  }

  test('a refused request leaves no doubt: another index is taken', async () => {
    const { asking, putSkyhook } = await startWithRequestAnswered(429)
    await asking.acquire(putSkyhook({ interruptionBudget: { count: 1 } }), 'cordoning', false)
    expect(asking.denials().size).toBe(0)
    expect(asking.held()).toMatchObject({ known: true, value: [{ ownership: 'owned' }] })
  })

  test('an unanswered request is repeated when the doubt is over, not whenever others are', async () => {
    const { asking, clock, putSkyhook } = await startWithRequestAnswered(504)
    const view = putSkyhook({ interruptionBudget: { count: 1 } })
    await clock.advance(50_000)
    await asking.acquire(view, 'cordoning', false)
    expect(asking.denials().get('s')).toMatchObject({
      message: 'the API server has not answered whether it created the slot',
      nextRequestAtMs: clock.steadyMs() + 10_000,
    })
    await clock.advance(10_000)
    await asking.acquire(view, 'cordoning', false)
    expect(asking.held()).toMatchObject({ known: true, value: [{ ownership: 'owned' }] })
  })
})

describe('an unanswered creation', () => {
  /**
   * The connection breaks during the first node's request for one of six slots, and during each read of its outcome.
   */
  async function startWithoutAnswer() {
    const scene = await startSlotManagerScene()
    const { api, first, putSkyhook, requestedLeases } = scene
    const view = putSkyhook({ interruptionBudget: { count: 6 } })
    api.fault(({ method }) => method === 'POST', { kind: 'lose-request' }, 1)
    api.fault(({ method, path }) => method === 'GET' && path.startsWith(`${leasesPath}/`), { kind: 'lose-request' }, 10)
    await expect(first.acquire(view, 'cordoning', false)).rejects.toThrow('it is unknown')
    const [unanswered] = requestedLeases()
    if (!unanswered) throw new Error('no slot was requested')
    return { ...scene, view, unanswered }
  }

  test('an unanswered creation is repeated with the same name, also when another would be picked now', async () => {
    const { first, view, unanswered, readyManagerOf, requestedLeases } = await startWithoutAnswer()
    for (const name of ['m1', 'm2']) {
      const other = await readyManagerOf(name)
      await other.acquire(view, 'cordoning', false)
    }
    await first.acquire(view, 'cordoning', false)
    expect(requestedLeases().at(-1)?.name).toBe(unanswered.name)
    expect(heldBy(first).lease).toBe(unanswered.name)
  })

  test('an unanswered creation holds no other name back once another node has it', async () => {
    const { api, first, view, unanswered } = await startWithoutAnswer()
    api.put(leasesPath, {
      metadata: { name: unanswered.name, labels: unanswered.labels },
      spec: { holderIdentity: 'other' },
    })
    await first.acquire(view, 'cordoning', false)
    expect(heldBy(first).lease).not.toBe(unanswered.name)
  })
})

test('a node that waits for a count says since when nobody has counted, and nothing of that otherwise', async () => {
  const { first, second, putSkyhook, setUncountedSince } = await startSlotManagerScene()
  const unknown = 'budget unknown: the census has not counted this Skyhook yet'
  const percent = putSkyhook({ interruptionBudget: { percent: 50 } })
  await first.acquire(percent, 'cordoning', false)
  expect(first.denials().get('s')?.message).toBe(unknown)
  setUncountedSince('2026-01-01T00:00:00Z')
  await first.acquire(percent, 'cordoning', false)
  expect(first.denials().get('s')?.message).toBe(`${unknown}; nobody has counted since 2026-01-01T00:00:00Z`)
  const one = putSkyhook()
  await first.acquire(one, 'cordoning', false)
  await second.acquire(one, 'cordoning', false)
  expect(second.denials().get('s')?.message).toBe('the budget of 1 node is used up')
})
