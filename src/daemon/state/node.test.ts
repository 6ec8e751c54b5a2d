import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { nodesPath, type Sample, sampleServer } from '../../../test/kit/api-server/sample-server.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import { NoResponseError } from '../../kube/errors.ts'
import type { KubernetesNode, Taint } from '../../schemas/kubernetes.ts'
import { followNode, type NodeSource } from './node.ts'

const taint: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }
const foreignTaint: Taint = { key: 'theirs', effect: 'NoSchedule' }

let api: Sample
let shutdown: AbortController
let source: NodeSource
let wakes: number

beforeEach(() => {
  api = sampleServer()
  shutdown = new AbortController()
  wakes = 0
})
afterEach(() => shutdown.abort())

/** Returns after its watch is open. */
async function follow(): Promise<void> {
  source = followNode(api.connect(), 'n', {
    clock: api.clock,
    random: createSeededRandom(1),
    wake: () => void wakes++,
    onFact: () => undefined,
    signal: shutdown.signal,
  })
  await api.eventually(() => expect(api.server.openWatches()).toBe(1))
}

function putNode(unschedulable: boolean, taints: readonly Taint[]): void {
  api.put(nodesPath, { metadata: { name: 'n' }, spec: { unschedulable, taints } })
}

/** Whether the promise is settled at once, and whether it is after `then`. */
async function settledBeforeAndAfter(then: () => void): Promise<boolean[]> {
  await follow()
  let isSettled = false
  void source.untilTaintMatches(20_000).then(() => (isSettled = true))
  await api.clock.advance(50)
  const before = isSettled
  then()
  await api.clock.advance(50)
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
  await follow()
  const waiting = source.untilTaintMatches(30)
  await api.clock.advance(30)
  await expect(waiting).resolves.toBeUndefined()
})

describe('what the agent has written', () => {
  const versionAfter = (node: KubernetesNode | undefined, versions: number): string =>
    String(Number(node?.metadata.resourceVersion) + versions)

  /** The own Node, and a write of the agent that the watch shows this many versions later. */
  async function writtenAhead(versions: number): Promise<KubernetesNode> {
    putNode(false, [])
    await follow()
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
    await api.clock.advance(100)
    expect(source.current()).toBe(written)
  })

  test('a write gives way to what the watch shows from this version on', async () => {
    await writtenAhead(1)
    putNode(true, [foreignTaint])
    await api.eventually(() => expect(source.current()?.spec?.taints).toEqual([foreignTaint]), 5_000)
  })

  test('a write gives way to a LIST, which shows the truth after a restore', async () => {
    await writtenAhead(5)
    source.relist()
    await api.eventually(() => expect(source.current()?.spec?.unschedulable).toBeUndefined())
  })

  test('a write is nothing where the watch was faster, or the Node is another one', async () => {
    const written = await writtenAhead(0)
    expect(source.current()?.spec?.unschedulable).toBeUndefined()
    source.written({ ...written, metadata: { ...written.metadata, uid: 'another', resourceVersion: '999' } })
    expect(source.current()?.spec?.unschedulable).toBeUndefined()
  })
})

describe('a write whose outcome nobody knows', () => {
  const isCertain = async (): Promise<void> => await api.eventually(() => expect(source.isInDoubt()).toBe(false), 5_000)

  async function writeUnanswered(): Promise<void> {
    const unanswered = new NoResponseError('PATCH /api/v1/nodes/n: the answer was lost', { mayHaveBeenSent: true })
    await expect(source.write(() => Promise.reject(unanswered))).rejects.toBe(unanswered)
  }

  test('a Node in doubt is listed right after the pause of a watch that was refused for now', async () => {
    putNode(false, [])
    await follow()
    api.fault(({ verb }) => verb === 'watch', { kind: 'refuse', code: 429, retryAfterSeconds: 5 })
    await api.eventually(() => expect(api.sent.filter(({ isWatch }) => isWatch)).toHaveLength(2), 1_000_000)
    await api.clock.advance(1_000)
    await writeUnanswered()
    expect(source.isInDoubt()).toBe(true)
    await api.clock.advance(5_000)
    expect(source.isInDoubt()).toBe(false)
  })

  test('a LIST that came too soon after another follows later, and the agent is woken', async () => {
    putNode(false, [])
    await follow()
    await writeUnanswered()
    await api.clock.advance(2_000) // the watch ends, and a LIST follows
    await isCertain()
    await writeUnanswered()
    const wakesBefore = wakes
    await api.clock.advance(20_000)
    expect([source.isInDoubt(), wakes]).toEqual([true, wakesBefore])
    await api.clock.advance(15_000)
    await isCertain()
    expect(wakes).toBeGreaterThan(wakesBefore)
  })
})
