import { expect, test } from 'vitest'
import { runsOf } from '../effort.ts'
import { packageSpec, startSampleLife } from './sample-life.ts'

type Life = Awaited<ReturnType<typeof startSampleLife>>

const packages = {
  tuned: packageSpec('tuned', { type: 'service', services: ['web'] }),
  kernel: packageSpec('kernel', { type: 'reboot' }),
}
const stagesOf = (name: string): string[] =>
  ['apply', 'config', 'post-interrupt'].flatMap((stage) => [`${name} ${stage}`, `${name} ${stage}-check`])
const everyStep = Object.keys(packages).flatMap(stagesOf).toSorted()

async function startLife(seed: number): Promise<Life> {
  const life = await startSampleLife({ seed })
  life.host.systemd.addService('web.service', { restart: () => ({ durationMs: 400, result: 'done' }) })
  await life.apply(packages)
  return life
}

const isComplete =
  (life: Life): (() => boolean) =>
  () =>
    life.status() === 'complete' && life.host.power() === 'up'
const count = (life: Life, event: string): number => life.events.filter((one) => one.event === event).length

test('an agent that is killed goes on after each of its effects, and starts no step twice', async () => {
  const quiet = await startLife(7)
  await quiet.until(isComplete(quiet))
  const effects = count(quiet, 'effect')
  expect(effects).toBeGreaterThan(100)
  const everyNth = effects / runsOf(80)
  for (let place = 1; place <= effects; place += everyNth) {
    const at = Math.floor(place)
    const life = await startLife(7)
    let passed = 0
    let name = ''
    life.host.observe((one) => {
      if (one.event !== 'effect' || ++passed !== at) return
      name = one.name
      life.agent()?.kill()
    })
    await life.until(() => passed >= at && isComplete(life)())
    expect([name, life.steps().toSorted()]).toEqual([name, everyStep])
    expect([name, count(life, 'rebootRequested')]).toEqual([name, 1])
    expect(count(life, 'restartRequested')).toBeLessThanOrEqual(1)
  }
})

test('an agent that was killed does nothing any more, and leaves no timer', async () => {
  const life = await startLife(3)
  await life.until(() => life.steps().includes('tuned config'))
  life.setKept(false)
  life.agent()?.kill()
  await life.clock.advance(20_000) // the steps end without it
  const seen = (): unknown => [life.requests.length, life.lines.length, life.events.length]
  const [before, timers] = [seen(), life.clock.pendingTimers]
  await life.clock.advance(3_600_000)
  expect(seen()).toEqual(before)
  expect(life.clock.pendingTimers).toBe(timers)
  expect(timers).toBeLessThan(5)
  life.setKept(true)
  await life.until(isComplete(life))
  expect(life.steps().toSorted()).toEqual(everyStep)
})

test('a power cut repeats the steps whose result it lost, and no other', async () => {
  let lost = 0
  const seeds = runsOf(80)
  for (let seed = 1; seed <= seeds; seed++) {
    const life = await startLife(seed)
    await life.clock.advance(5_000 + ((seed * 1_300) % 30_000))
    life.host.cutPower({ loss: seed % 2 === 0 ? 'all' : 'some' })
    await life.until(isComplete(life))
    const lostSteps = life.events.flatMap((one) =>
      one.event === 'stepLost' ? [`${one.step.package} ${one.step.mode}`] : [],
    )
    lost += lostSteps.length
    expect([seed, life.steps().toSorted()]).toEqual([seed, [...everyStep, ...lostSteps].toSorted()])
  }
  expect(lost).toBeGreaterThan(seeds / 5)
})
