/** The slot of the control plane, which a control-plane node holds in addition to that of the Skyhook. */
import { expect, test } from 'vitest'
import { nodeOf, startSlotManagerScene, type TestedManager } from '../../../test/kit/slots/slot-manager-scene.ts'
import type { OwnSlot } from '../../stages/model/snapshot.ts'

/** Both nodes belong to the control plane. */
async function startControlPlaneScene() {
  const scene = await startSlotManagerScene()
  for (const name of ['n1', 'n2']) scene.putNode(name, nodeOf(name, { 'node-role.kubernetes.io/control-plane': '' }))
  return scene
}

const heldScopes = (manager: TestedManager): readonly string[] => {
  const held = manager.held()
  return held.known ? held.value.map(({ scope }) => scope).toSorted() : []
}
/** The slot of the control plane; throws if the node does not hold it. */
const guardOf = (manager: TestedManager): OwnSlot => {
  const held = manager.held()
  const slot = held.known ? held.value.find(({ scope }) => scope === 'control-plane') : undefined
  if (!slot) throw new Error('the control-plane slot is not held')
  return slot
}

test('one node of the control plane at a time holds its slot, which is taken together with that of the Skyhook', async () => {
  const { first, second, putSkyhook, leaseCount } = await startControlPlaneScene()
  const view = putSkyhook({ interruptionBudget: { count: 2 } })
  await first.acquire(view, 'cordoning', true)
  expect([heldScopes(first), leaseCount()]).toEqual([['control-plane', 'skyhook'], 2])
  await second.acquire(view, 'cordoning', true)
  expect([heldScopes(second), leaseCount()]).toEqual([[], 2])
  expect(second.denials().get('s')).toMatchObject({
    waitsFor: 'control-plane',
    message: 'another node of the control plane is out of service',
  })
  await first.release(guardOf(first))
  await second.acquire(view, 'cordoning', true)
  expect(heldScopes(second)).toEqual(['control-plane', 'skyhook'])
})

test('the slot of the control plane is not created while the budget of the Skyhook is used up', async () => {
  const { first, second, putSkyhook, leaseCount } = await startControlPlaneScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  await second.acquire(view, 'cordoning', true)
  expect([leaseCount(), second.denials().get('s')?.waitsFor]).toEqual([1, undefined])
})

test('the slot of the control plane is asked for by work under way, and created for a node that is out of service', async () => {
  const { first, second, putSkyhook } = await startControlPlaneScene()
  const view = putSkyhook({ interruptionBudget: { count: 2 } })
  await first.acquireControlPlane(view, 'working')
  await second.acquireControlPlane(view, 'working')
  expect([heldScopes(first), heldScopes(second)]).toEqual([['control-plane'], []])
  await second.createRecovery(view, 'interrupting', 'control-plane')
  expect(heldScopes(second)).toEqual(['control-plane'])
})

test('the slot of the control plane that another node is faster to take is asked for again when that one releases it', async () => {
  const { api, clock, first, putSkyhook } = await startControlPlaneScene()
  const view = putSkyhook()
  api.fault(({ method }) => method === 'POST', { kind: 'refuse', code: 409, reason: 'AlreadyExists' }, 1)
  await first.acquireControlPlane(view, 'working')
  const { message, nextRequestAtMs = 0, waitsFor } = first.denials().get('s') ?? {}
  expect([message, waitsFor]).toEqual(['another node of the control plane is out of service', 'control-plane'])
  expect(nextRequestAtMs - clock.steadyMs()).toBeGreaterThanOrEqual(30_000)
})

test('the slot of the control plane that the API server rejects is asked for again soon, and nobody is said to be out of service', async () => {
  const { api, clock, first, putSkyhook } = await startControlPlaneScene()
  const view = putSkyhook()
  const isGuard = ({ method, body }: { method: string; body?: unknown }): boolean =>
    method === 'POST' && JSON.stringify(body).includes('control-plane')
  for (const ask of [
    async () => await first.acquire(view, 'cordoning', true),
    async () => await first.acquireControlPlane(view, 'working'),
  ]) {
    api.fault(isGuard, { kind: 'refuse', code: 403, reason: 'Forbidden' }, 1)
    await ask()
    const { message, nextRequestAtMs = 0, waitsFor } = first.denials().get('s') ?? {}
    expect(message).toContain('the API server rejected the slot')
    expect([waitsFor, nextRequestAtMs - clock.steadyMs() <= 2_000]).toEqual(['control-plane', true])
  }
})

test('the slot of the control plane goes back only while the API server is ready', async () => {
  const { api, first, putSkyhook } = await startControlPlaneScene()
  const view = putSkyhook()
  await first.acquireControlPlane(view, 'working')
  api.fault(({ path }) => path === '/readyz', { kind: 'refuse', code: 500 }, 1)
  await expect(first.release(guardOf(first))).rejects.toThrow('refused by a fault')
  expect([heldScopes(first), guardOf(first).ownership]).toEqual([['control-plane'], 'seen'])
  await first.renew(guardOf(first), 'working')
  expect(guardOf(first).ownership).toBe('owned')
})

test('nothing starts under the slot of the control plane while readiness of the API server is unknown', async () => {
  const { api, clock, first, putSkyhook } = await startControlPlaneScene()
  await first.acquireControlPlane(putSkyhook(), 'working')
  api.fault(({ path }) => path === '/readyz', { kind: 'slow', byMs: 100 }, 1)
  const released = first.release(guardOf(first))
  expect(guardOf(first).ownership).toBe('releasing')
  await clock.advance(100)
  await released
  expect(heldScopes(first)).toEqual([])
})

test('an interrupt is reported in both slots, and not allowed without the one of the control plane', async () => {
  const { first, putSkyhook } = await startControlPlaneScene()
  const view = putSkyhook()
  await first.acquire(view, 'cordoning', false)
  expect(await first.report(view.metadata.uid, 'rebooting')).toBe(false)
  await first.acquireControlPlane(view, 'working')
  expect(await first.report(view.metadata.uid, 'rebooting')).toBe(true)
  expect(guardOf(first).phase).toBe('rebooting')
})
