import { beforeEach, expect, test } from 'vitest'
import { createDisk } from '../../../test/kit/host/disk.ts'
import { createSimulatedRoot } from '../../../test/kit/host/simulated-root.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../../test/kit/virtual-clock.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { Clock } from '../../schemas/clock.ts'
import { createLog } from '../telemetry/log.ts'
import { openSteadyTime, type SteadyTime } from './steady-time.ts'

const hourMs = 3_600_000
const bootedMs = 7_000_000

let clock: VirtualClock
let root: HostRoot
let warnings: string[]

beforeEach(async () => {
  clock = createVirtualClock(undefined, { settleTurns: 0 })
  const random = createSeededRandom(1)
  const disk = createDisk({ ...clock, random, volatileFolders: ['/run'] })
  root = createSimulatedRoot({ disk, random, passed: async () => undefined })
  for (const path of ['/proc/sys/kernel/random', '/run']) await root.makeFolder(path, 0o755)
  warnings = []
  await boot('1')
})

const boot = async (id: string): Promise<void> =>
  await root.writeFile('/proc/sys/kernel/random/boot_id', `0000000${id}-0000-4000-8000-000000000000\n`, 0o444)

/** A process that starts now: its own steady time starts from the wall clock of now. */
async function startProcess(): Promise<SteadyTime> {
  const hundredths = Math.floor((bootedMs + clock.monotonicMs()) / 10) // as the kernel: the rest is cut off
  await root.writeFile('/proc/uptime', `${(hundredths / 100).toFixed(2)} 1.00\n`, 0o444)
  const startMs = clock.wallMs() - clock.monotonicMs()
  const own: Clock = { ...clock, steadyMs: () => startMs + clock.monotonicMs() }
  const log = { ...createLog('silent', {}), warn: (_: object, message: string) => void warnings.push(message) }
  return await openSteadyTime({ clock: own, root, log })
}

test('steady time starts from the wall clock, and continues in the next process of the boot whatever that shows', async () => {
  const first = await startProcess()
  expect([first.clock.steadyMs(), await first.keep()]).toEqual([clock.wallMs(), false])
  await clock.advance(10_000)
  clock.setWallMs(clock.wallMs() - hourMs)
  const second = await startProcess()
  expect([second.clock.steadyMs(), await second.keep()]).toEqual([first.clock.steadyMs() - 10, true])
  await clock.advance(10_000)
  clock.setWallMs(clock.wallMs() + 5 * hourMs)
  const third = await startProcess()
  expect([third.clock.steadyMs(), await third.keep()]).toEqual([first.clock.steadyMs() - 20, true])
  expect(third.clock.wallMs()).toBe(clock.wallMs())
})

test('steady time of a later process is never ahead of the one before, and at most 20 ms behind, however uptimes are cut off', async () => {
  const differences: number[] = []
  for (let ms = 0; ms < 20; ms++) {
    await boot(`${ms % 10}`)
    await clock.advance(10_003)
    let earlier = await startProcess()
    await earlier.keep()
    for (let restart = 0; restart < 10; restart++) {
      await clock.advance(1_000 + ((ms + 3 * restart) % 10))
      const later = await startProcess()
      expect(await later.keep()).toBe(true)
      differences.push(later.clock.steadyMs() - earlier.clock.steadyMs())
      earlier = later
    }
  }
  expect(Math.max(...differences)).toBeLessThanOrEqual(0)
  expect(Math.min(...differences)).toBeGreaterThanOrEqual(-20)
  expect(new Set(differences).size).toBeGreaterThan(10)
})

test('steady time starts again with a boot, also where the file of the earlier one is still there', async () => {
  const first = await startProcess()
  await first.keep()
  clock.setWallMs(clock.wallMs() - hourMs)
  await boot('2')
  const second = await startProcess()
  expect([second.clock.steadyMs(), await second.keep()]).toEqual([clock.wallMs(), false])
  expect(await (await startProcess()).keep()).toBe(true)
})

test('an agent that waited for another one to exit does not take its times for its own', async () => {
  const waiting = await startProcess()
  clock.setWallMs(clock.wallMs() + hourMs)
  await (await startProcess()).keep()
  expect(await waiting.keep()).toBe(false)
  expect(await (await startProcess()).keep()).toBe(true) // it left its own
})

test('a host that does not say how long it is up has waits that start over, and no warning', async () => {
  await root.remove('/proc/uptime')
  const log = createLog('silent', {})
  const open = async (): Promise<boolean> => await (await openSteadyTime({ clock, root, log })).keep()
  expect([await open(), await open(), warnings]).toEqual([false, false, []])
})

test.each<[string, () => Promise<void>, readonly string[]]>([
  ['is damaged', async () => await root.writeFile('/run/skyhook/steady-time', 'x', 0o600), []],
  [
    'cannot be read',
    async () => {
      await root.remove('/run/skyhook/steady-time')
      await root.makeFolder('/run/skyhook/steady-time', 0o700)
    },
    ['steady time cannot be kept for the next agent, waits start over'],
  ],
])('a file that %s is that of another clock, and an agent starts all the same', async (_, damage, expected) => {
  await (await startProcess()).keep()
  await damage()
  const next = await startProcess()
  expect([next.clock.steadyMs(), await next.keep(), warnings]).toEqual([clock.wallMs(), false, expected])
})
