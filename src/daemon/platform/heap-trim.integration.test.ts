import { afterEach, expect, test } from 'vitest'
import { startHeapTrim } from './heap-trim.ts'

const shutdown = new AbortController()
afterEach(() => shutdown.abort())

test('a heap that no longer needs its memory returns it to the host', async () => {
  const heapMiB = (): number => process.memoryUsage().heapTotal / 2 ** 20
  const before = heapMiB()
  const kept: unknown[] = []
  while (heapMiB() < before + 20) kept.push(Array.from({ length: 10_000 }, (_, index) => ({ index })))
  const full = heapMiB()
  kept.length = 0
  startHeapTrim(shutdown.signal, 10)
  await expect.poll(heapMiB, { timeout: 10_000 }).toBeLessThan(full - 15)
}, 20_000)
