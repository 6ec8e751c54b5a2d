import { afterEach, expect, test } from 'vitest'
import { startHeapTrim } from './heap-trim.ts'

const shutdown = new AbortController()
afterEach(() => shutdown.abort())

test('what the heap does not need any more goes back to the host by itself', async () => {
  const heapMiB = (): number => process.memoryUsage().heapTotal / 2 ** 20
  const before = heapMiB()
  const garbage = { items: Array.from({ length: 1_000_000 }, (_, index) => ({ index })) }
  const full = heapMiB()
  expect(full - before).toBeGreaterThan(20)
  garbage.items = []
  startHeapTrim(shutdown.signal, 10)
  await expect.poll(heapMiB, { timeout: 10_000 }).toBeLessThan(full - 15)
}, 20_000)
