import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { startFakeApiServer, type FakeApiServer } from '../../../test/support/fake-api-server.ts'
import { createVirtualClock } from '../../../test/support/virtual-clock.ts'
import { NoResponseError } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { KubernetesNode, Taint } from '../../schemas/kubernetes.ts'
import { systemClock, systemRandom } from '../platform/system-clock.ts'
import { followNode, type NodeSource } from './node.ts'

const taint: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }
const foreignTaint: Taint = { key: 'theirs', effect: 'NoSchedule' }

let server: FakeApiServer
let transport: KubeTransport
let shutdown: AbortController
let source: NodeSource

beforeEach(async () => {
  server = await startFakeApiServer()
  transport = server.connect()
  shutdown = new AbortController()
})

afterEach(async () => {
  shutdown.abort()
  transport.close()
  await server.stop()
})

const follow = (): NodeSource =>
  followNode(transport, 'n', {
    clock: systemClock,
    random: systemRandom,
    wake: () => undefined,
    onFact: () => undefined,
    signal: shutdown.signal,
  })

function putNode(unschedulable: boolean, taints: readonly Taint[]): void {
  server.put('/api/v1/nodes', { metadata: { name: 'n' }, spec: { unschedulable, taints } })
}

/** Whether it is settled at once, and again after `then`. */
async function settledBeforeAndAfter(then: () => void): Promise<boolean[]> {
  source = follow()
  await source.synced
  let isSettled = false
  const waiting = source.untilTaintMatches(20_000).then(() => (isSettled = true))
  await sleep(50)
  const before = isSettled
  then()
  await Promise.race([waiting, sleep(5_000)])
  return [before, isSettled]
}

test('a cordon is settled once its taint is there', async () => {
  putNode(true, [foreignTaint])
  expect(await settledBeforeAndAfter(() => putNode(true, [foreignTaint, taint]))).toEqual([false, true])
})

test('a cordon given back is settled once its taint is gone', async () => {
  putNode(false, [taint])
  expect(await settledBeforeAndAfter(() => putNode(false, []))).toEqual([false, true])
})

test('a wait for a taint that no controller sets ends by itself', async () => {
  putNode(true, [])
  source = follow()
  await source.synced
  await expect(source.untilTaintMatches(30)).resolves.toBeUndefined()
})

describe('what the agent has written', () => {
  const versionAfter = (node: KubernetesNode | undefined, versions: number): string =>
    String(Number(node?.metadata.resourceVersion) + versions)

  /** The own Node, and a write of the agent that the watch shows so many versions later. */
  async function writtenAhead(versions: number): Promise<KubernetesNode> {
    putNode(false, [])
    source = follow()
    await source.synced
    const node = source.current()
    if (node === undefined) throw new Error('there is no Node')
    const metadata = { ...node.metadata, resourceVersion: versionAfter(node, versions) }
    const written = { ...node, metadata, spec: { unschedulable: true } }
    source.written(written)
    return written
  }

  test('a write is the Node of the next decision, also beside earlier events', async () => {
    const written = await writtenAhead(2)
    expect(source.current()).toBe(written)
    putNode(false, [foreignTaint])
    await sleep(100)
    expect(source.current()).toBe(written)
  })

  test('a write gives way to what the watch shows from this version on', async () => {
    await writtenAhead(1)
    putNode(true, [foreignTaint])
    await vi.waitFor(() => expect(source.current()?.spec?.taints).toEqual([foreignTaint]), 5_000)
  })

  test('a write gives way to a LIST, which shows the truth after a restore', async () => {
    await writtenAhead(5)
    source.relist()
    await vi.waitFor(() => expect(source.current()?.spec?.unschedulable).toBe(false), 5_000)
  })

  test('a write is nothing where the watch was faster, or the Node is another one', async () => {
    const written = await writtenAhead(0)
    expect(source.current()?.spec?.unschedulable).toBe(false)
    source.written({ ...written, metadata: { ...written.metadata, uid: 'another', resourceVersion: '999' } })
    expect(source.current()?.spec?.unschedulable).toBe(false)
  })
})

describe('a write whose outcome nobody knows', () => {
  const clock = createVirtualClock()
  let wakes: number
  const isCertain = async (): Promise<void> => await vi.waitFor(() => expect(source.isInDoubt()).toBe(false), 5_000)

  async function writeUnanswered(): Promise<void> {
    const unanswered = new NoResponseError('PATCH /api/v1/nodes/n: the answer was lost', { mayHaveBeenSent: true })
    await expect(source.write(() => Promise.reject(unanswered))).rejects.toBe(unanswered)
  }

  beforeEach(async () => {
    wakes = 0
    putNode(false, [])
    const wake = (): void => void wakes++
    source = followNode(transport, 'n', {
      clock,
      random: systemRandom,
      wake,
      onFact: () => {},
      signal: shutdown.signal,
    })
    await source.synced
    await writeUnanswered()
    await clock.advance(2_000) // the watch ends, and a LIST follows
    await isCertain()
  })

  test('a LIST that came too soon after another follows later, and the agent is woken', async () => {
    await writeUnanswered()
    const wakesBefore = wakes
    await clock.advance(20_000)
    expect([source.isInDoubt(), wakes]).toEqual([true, wakesBefore])
    await clock.advance(15_000)
    await isCertain()
    expect(wakes).toBeGreaterThan(wakesBefore)
  })
})
