import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { systemClock } from './system-clock.ts'

test('steady time is the same in each process of the host', async () => {
  const source = `
    import { systemClock } from ${JSON.stringify(new URL('system-clock.ts', import.meta.url).href)}
    process.stdout.write(String(systemClock.steadyMs()))`
  const beforeMs = systemClock.steadyMs()
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', source])
  const afterMs = systemClock.steadyMs()
  expect(Number(stdout)).toBeGreaterThanOrEqual(beforeMs)
  expect(Number(stdout)).toBeLessThanOrEqual(afterMs)
  expect(Number(stdout)).toBeLessThan(systemClock.wallMs() / 10) // of the boot, not since 1970
})
