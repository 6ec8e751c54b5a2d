import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished, expect, test } from 'vitest'
import { memoryOf } from './memory.ts'

/** Says when it is ready, and when it has written so many bytes of memory after a line on its standard input. */
const program = `
console.log('ready')
process.stdin.once('data', (line) => {
  globalThis.block = Buffer.alloc(Number(line), 1)
  console.log('written')
})`

test('private memory of a process grows by what it writes', async () => {
  const child = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill())
  await once(child.stdout, 'data')
  const before = memoryOf(child.pid as number)
  child.stdin.write(`${64 * 2 ** 20}\n`)
  await once(child.stdout, 'data')
  const after = memoryOf(child.pid as number)
  expect(after.privateMiB - before.privateMiB).toBeGreaterThan(48)
  expect(after.rssMiB - before.rssMiB).toBeGreaterThan(48)
})
