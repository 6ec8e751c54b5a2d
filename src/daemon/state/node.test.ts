import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startFakeApiServer, type FakeApiServer } from '../../../test/support/fake-api-server.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { Taint } from '../../schemas/kubernetes.ts'
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

function putNode(unschedulable: boolean, taints: readonly Taint[]): void {
  server.put('/api/v1/nodes', { metadata: { name: 'n' }, spec: { unschedulable, taints } })
}

/** Whether it is settled at once, and again after `then`. */
async function settledBeforeAndAfter(then: () => void): Promise<boolean[]> {
  source = followNode(transport, 'n', {
    clock: systemClock,
    random: systemRandom,
    wake: () => undefined,
    onFact: () => undefined,
    signal: shutdown.signal,
  })
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
  source = followNode(transport, 'n', {
    clock: systemClock,
    random: systemRandom,
    wake: () => undefined,
    onFact: () => undefined,
    signal: shutdown.signal,
  })
  await source.synced
  await expect(source.untilTaintMatches(30)).resolves.toBeUndefined()
})
