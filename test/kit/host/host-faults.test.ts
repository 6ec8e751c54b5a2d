import { expect, test } from 'vitest'
import { errno } from './inodes.ts'
import { packageSpec, startSampleLife } from './sample-life.ts'

const withReboot = { kernel: packageSpec('kernel', { type: 'reboot' }) }
const plain = { tuned: packageSpec('tuned') }

test('the same seed gives the same life, event by event', async () => {
  const traces: string[] = []
  for (const seed of [5, 5, 6]) {
    const life = await startSampleLife({ seed })
    const trace: string[] = []
    life.host.observe((event, atMs) => void trace.push(`${atMs} ${JSON.stringify(event)}`))
    await life.apply(withReboot)
    await life.clock.advance(12_345)
    life.host.cutPower()
    await life.until(() => life.status() === 'complete')
    traces.push(trace.join('\n'))
  }
  expect(traces[1]).toBe(traces[0])
  expect(traces[2]).not.toBe(traces[0])
})

test.each([-3_600_000, 3_600_000])(
  'a wall clock that jumps by %d ms changes no wait of a whole life',
  async (jumpMs) => {
    const durations: number[] = []
    for (const offsetMs of [0, jumpMs]) {
      const life = await startSampleLife({ seed: 9 })
      await life.apply(withReboot)
      await life.until(() => life.steps().includes('kernel config'))
      life.host.setWallOffsetMs(offsetMs)
      durations.push(await life.until(() => life.status() === 'complete'))
    }
    expect(Math.abs((durations[1] ?? 0) - (durations[0] ?? 0))).toBeLessThan(2_000)
  },
)

test('an image that cannot be fetched for a while is named on the Node, and then fetched', async () => {
  let isDown = true
  const life = await startSampleLife({
    seed: 1,
    fetchFate: () => ({ durationMs: 100, ...(isDown && { code: 'unreachable' }) }),
  })
  await life.apply(plain)
  await life.until(() => life.reason()?.includes('unreachable') === true)
  expect(life.steps()).toEqual([])
  isDown = false
  await life.until(() => life.status() === 'complete')
})

test('a disk that is full for a while is named on the Node, and work continues afterwards', async () => {
  const life = await startSampleLife({
    seed: 1,
  })
  await life.until(() => life.lines.some(({ message }) => message === 'synced'))
  life.host.disk.setFull(true)
  await life.apply(plain)
  await life.until(() => life.reason()?.includes('ENOSPC') === true)
  expect(life.steps()).toEqual([])
  life.host.disk.setFull(false)
  await life.until(() => life.status() === 'complete')
})

test.each(['create', 'write', 'sync', 'rename'] as const)(
  'a journal whose %s fails is named in words that stay the same, and costs few requests',
  async (failing) => {
    const life = await startSampleLife({ seed: 1 })
    await life.until(() => life.lines.some(({ message }) => message === 'synced'))
    life.host.disk.setFault((operation, path) =>
      operation === failing && path.includes('/journal.json') ? 'EROFS' : undefined,
    )
    await life.apply(plain)
    await life.clock.advance(5_000)
    const [requests, reason] = [life.requests.length, life.reason()]
    expect(reason).toContain('EROFS')
    await life.clock.advance(60_000)
    expect(life.reason()).toBe(reason)
    expect(life.requests.length - requests).toBeLessThan(20)
    expect(life.steps()).toEqual([])
  },
)

test('a reboot that an inhibitor blocks is asked for again until the inhibitor is gone', async () => {
  const life = await startSampleLife({ seed: 1 })
  const { host } = life
  host.logind.setInhibitors([{ who: 'apt', why: 'upgrading' }])
  await life.apply(withReboot)
  const bootId = host.bootId()
  await life.until(() => life.reason()?.includes('apt') === true)
  expect(host.bootId()).toBe(bootId)
  host.logind.setInhibitors([])
  await life.until(() => life.status() === 'complete')
  expect(host.bootId()).not.toBe(bootId)
})

test('a reboot that logind accepts and loses is named on the Node, and made in the end', async () => {
  const life = await startSampleLife({ seed: 1 })
  life.host.logind.setFate('lost')
  await life.apply(withReboot)
  const lost = (): boolean => life.events.some((one) => one.event === 'rebootRequested' && one.isLost)
  await life.until(lost)
  const bootId = life.host.bootId()
  life.host.logind.setFate('carried-out')
  await life.until(() => life.status() === 'complete', 3_600_000)
  expect(life.host.bootId()).not.toBe(bootId)
})

test('a shutdown that takes minutes is waited for and not asked for again', async () => {
  const life = await startSampleLife({ seed: 1, shutdownMs: () => 240_000 })
  await life.apply(withReboot)
  await life.until(() => life.status() === 'complete', 1_200_000)
  expect(life.events.filter(({ event }) => event === 'rebootRequested')).toHaveLength(1)
})

test('a bus that is away for a while costs no step, and none runs twice', async () => {
  const life = await startSampleLife({ seed: 1 })
  await life.apply(plain)
  await life.until(() => life.steps().includes('tuned apply'))
  life.host.bus.setUp(false)
  await life.clock.advance(5_000)
  expect(life.steps()).toEqual(['tuned apply'])
  expect(life.events.some(({ event }) => event === 'stepEnded')).toBe(true)
  life.host.bus.setUp(true)
  await life.until(() => life.status() === 'complete')
  expect(life.steps()).toEqual(['tuned apply', 'tuned apply-check', 'tuned config', 'tuned config-check'])
})

test.each(['lost-call', 'lost-answer', 'silent'] as const)(
  'a start that meets %s runs its step once',
  async (fault) => {
    const life = await startSampleLife({ seed: 1 })
    let met = 0
    life.host.bus.setScript(({ member }) => (member === 'StartTransientUnit' && met++ === 0 ? fault : undefined))
    await life.apply(plain)
    await life.until(() => life.status() === 'complete')
    expect(met).toBeGreaterThan(0)
    expect(life.steps()).toEqual(['tuned apply', 'tuned apply-check', 'tuned config', 'tuned config-check'])
  },
)

test('a host whose settings contradict the units of steps is asked again after a pause each time, and says why', async () => {
  const life = await startSampleLife({ seed: 1 })
  let starts = 0
  life.host.bus.setScript(({ member }) => {
    if (member === 'StartTransientUnit') starts++
    return undefined
  })
  life.host.systemd.setRefusingSteps(true)
  await life.apply(plain)
  await life.until(() => starts > 0)
  await life.clock.advance(60_000)
  expect(starts).toBeLessThan(6)
  expect(life.reason()).toMatch(/StepFailed.*has a bad unit file setting.*correct the drop-in/)
  life.host.systemd.setRefusingSteps(false)
  await life.until(() => life.status() === 'complete')
  expect(life.steps()).toEqual(['tuned apply', 'tuned apply-check', 'tuned config', 'tuned config-check'])
})

test('a host that is wiped installs everything again', async () => {
  const life = await startSampleLife({ seed: 1 })
  await life.apply(plain)
  await life.until(() => life.status() === 'complete')
  life.host.wipe()
  await life.until(() => life.steps().length === 8)
  await life.until(() => life.status() === 'complete')
  expect(life.steps().slice(4)).toEqual(life.steps().slice(0, 4))
})

test('a second agent waits for the death of the first, and then works', async () => {
  const life = await startSampleLife({ seed: 1 })
  await life.until(() => life.lines.some(({ message }) => message === 'synced'))
  const second = life.startAnother()
  await life.clock.advance(10_000)
  expect(life.lines.map(({ message }) => message)).toContain('waiting for another agent on this host to exit')
  expect(life.host.claims.holder()).toBe(life.agent()?.process)
  life.setKept(false)
  life.agent()?.kill()
  await life.apply(plain)
  await life.until(() => life.status() === 'complete')
  expect(life.host.claims.holder()).toBe(second.process)
  second.terminate()
  await life.clock.advance(1_000)
  expect(await second.ended).toBe(0)
  expect(life.host.processes().size).toBe(0)
})

test('a Node says Ready from the new boot only after its kubelet is back', async () => {
  const life = await startSampleLife({ seed: 1, bootMs: () => 60_000 })
  const ready = (): unknown => {
    const { conditions = [], nodeInfo } = life.node()?.status ?? {}
    return [conditions.find(({ type }) => type === 'Ready')?.status, nodeInfo?.bootID === life.host.bootId()]
  }
  await life.clock.advance(10_000)
  expect(ready()).toEqual(['True', true])
  life.host.cutPower()
  await life.clock.advance(45_000)
  expect(ready()).toEqual(['Unknown', true])
  await life.clock.advance(17_000)
  expect(ready()).toEqual(['Unknown', false])
  await life.clock.advance(5_000)
  expect(ready()).toEqual(['True', true])
})

test('an errno of the disk ends a fetch as it ends a real one', async () => {
  const error = errno('EROFS', 'mkdir', '/var/lib')
  const life = await startSampleLife({ seed: 1, fetchFate: () => ({ durationMs: 10, errno: error }) })
  await life.apply(plain)
  await life.until(() => life.reason()?.includes('read-only') === true)
  expect(life.steps()).toEqual([])
})
