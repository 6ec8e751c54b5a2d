import { expect, test } from 'vitest'
import { packageSpec, startSampleLife } from './sample-life.ts'

const hourMs = 3_600_000

/** A host whose first step fails, after some idle time, and the moments (monotonic ms) at which its apply was started. */
async function startFailingLife(seed: number, idleMs = 0) {
  let attempts = 0
  const life = await startSampleLife({
    seed,
    runStep: ({ mode }) => ({ durationMs: 100, exitCode: mode === 'apply' && attempts++ < 2 ? 1 : 0 }),
  })
  await life.clock.advance(idleMs)
  const startedAtMs: number[] = []
  life.host.observe((event, atMs) => {
    if (event.event === 'stepStarted' && event.step.mode === 'apply') startedAtMs.push(atMs)
  })
  await life.apply({ tuned: packageSpec('tuned') })
  return { life, startedAtMs }
}

test.for([
  ['back', -hourMs],
  ['forward', hourMs],
] as const)('a host whose wall clock goes %s by an hour retries a failed stage in time', async ([, jumpMs]) => {
  const { life, startedAtMs } = await startFailingLife(11)
  await life.until(() => life.reason()?.includes('StepFailed') === true)
  life.host.setWallOffsetMs(jumpMs)
  await life.until(() => life.status() === 'complete', 60_000)
  const pausesMs = startedAtMs.slice(1).map((atMs, index) => atMs - (startedAtMs[index] ?? 0))
  expect(pausesMs).toHaveLength(2)
  expect(pausesMs[0]).toBeGreaterThanOrEqual(4_000) // 5 s less a fifth
  expect(pausesMs[0]).toBeLessThan(6_500)
  expect(pausesMs[1]).toBeGreaterThanOrEqual(8_000)
  expect(pausesMs[1]).toBeLessThan(12_000)
})

/** From the first start of a stage that failed until the second: it waits 4 to 5 s, and a host is down for 20 s. */
async function pauseOver(interruption: 'restart' | 'boot', jumpMs: number): Promise<number> {
  const { life, startedAtMs } = await startFailingLife(12, 1_200_000)
  await life.until(() => life.reason()?.includes('StepFailed') === true)
  life.host.setWallOffsetMs(jumpMs)
  if (interruption === 'boot') life.host.cutPower()
  else life.agent()?.kill()
  await life.until(() => startedAtMs.length > 1)
  return (startedAtMs[1] ?? 0) - (startedAtMs[0] ?? 0)
}

test.for([
  ['goes back an hour', -hourMs],
  ['is right', 0],
  ['goes forward an hour', hourMs],
] as const)('an agent that starts again while the wall clock %s retries a failed stage in time', async ([, jumpMs]) => {
  const pauseMs = await pauseOver('restart', jumpMs)
  expect(pauseMs).toBeGreaterThanOrEqual(4_000)
  expect(pauseMs).toBeLessThan(6_500)
})

test.for([
  ['went back an hour', -hourMs, 330_000], // the longest pause, and the boot
  ['is right', 0, 30_000],
  ['went forward an hour', hourMs, 30_000],
] as const)('a host that boots when its wall clock %s retries a failed stage in time', async ([, jumpMs, maxMs]) => {
  expect(await pauseOver('boot', jumpMs)).toBeLessThan(maxMs)
})

test('times that the Node shows follow the wall clock after it was corrected', async () => {
  const { life } = await startFailingLife(15)
  await life.until(() => life.reason()?.includes('StepFailed') === true)
  life.host.setWallOffsetMs(-hourMs)
  await life.until(() => life.status() === 'complete', 60_000)
  const ready = life.node()?.status?.conditions?.find(({ type }) => type.endsWith('/NotReady'))
  const ageMs = life.clock.wallMs() - hourMs - Date.parse(ready?.lastTransitionTime ?? '')
  expect(Math.abs(ageMs)).toBeLessThan(30_000)
})
