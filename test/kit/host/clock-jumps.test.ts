import { expect, test } from 'vitest'
import { packageSpec, startSampleLife } from './sample-life.ts'

const hourMs = 3_600_000

/** A host whose first step fails: since when, and the moments (monotonic ms) at which its apply was started. */
async function startFailingLife(seed: number) {
  let attempts = 0
  const life = await startSampleLife({
    seed,
    runStep: ({ mode }) => ({ durationMs: 100, exitCode: mode === 'apply' && attempts++ < 2 ? 1 : 0 }),
  })
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

test('an agent that starts after the wall clock went back an hour waits no longer than its limit', async () => {
  const { life, startedAtMs } = await startFailingLife(12)
  await life.until(() => life.reason()?.includes('StepFailed') === true)
  life.host.setWallOffsetMs(-hourMs)
  life.agent()?.kill()
  await life.until(() => life.status() === 'complete', 60_000)
  expect((startedAtMs[1] ?? 0) - (startedAtMs[0] ?? 0)).toBeLessThan(6_500)
})

test('a host that boots with a wall clock of an hour ago retries what its journal has within the longest pause', async () => {
  const { life } = await startFailingLife(13)
  await life.until(() => life.reason()?.includes('StepFailed') === true)
  life.host.setWallOffsetMs(-hourMs)
  life.host.cutPower()
  expect(await life.until(() => life.status() === 'complete')).toBeLessThan(400_000)
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
