import { expect, test } from 'vitest'
import { podsPath } from '../../test/kit/api-server/sample-server.ts'
import { packageSpec, type SampleLife, startSampleLife } from '../../test/kit/host/sample-life.ts'
import { filesOf } from '../../test/kit/files/host-files.ts'
import { hostKey, reasonKey } from '../schemas/annotations.ts'
import { type Clock, sleep } from '../schemas/clock.ts'
import { runAgent } from './agent.ts'

const isSynced = ({ lines }: SampleLife): boolean => lines.some(({ message }) => message === 'synced')
const packages = { tuned: packageSpec('tuned') }

test('an unfit host is reported on its Node, requests no slot, and works once it is fixed', async () => {
  const life = await startSampleLife({ seed: 1 })
  const files = filesOf(life.host.disk)
  const annotation = (key: string): unknown =>
    JSON.parse((life.node()?.metadata.annotations as Record<string, string> | undefined)?.[key] ?? 'null')
  const slots = (): string[] =>
    life.server
      .objects('leases')
      .map(({ metadata }) => metadata.name)
      .filter((name) => /\.(slot|node)-/.test(name))
  await life.until(() => isSynced(life))
  const lostShell = 'the host has no /bin/sh, and every step needs it'
  files.remove('/bin/sh')
  await life.apply(packages)
  await life.until(() => life.reason()?.includes(lostShell) === true)
  await life.clock.advance(60_000)
  expect(annotation(reasonKey('s'))).toMatchObject({ reason: 'HostUnusable' })
  expect(annotation(hostKey)).toMatchObject({
    findings: [{ id: 'missing-program', severity: 'error', message: lostShell, remedy: 'Install it on the host' }],
  })
  expect([slots(), life.steps()]).toEqual([[], []])
  files.write('/bin/sh', 'a shell', 0o755)
  await life.until(() => slots().length === 1)
  await life.until(() => life.status() === 'complete')
  expect(annotation(hostKey)).toMatchObject({ findings: [] })
})

test('each agent of a process has its own log, health and metrics', async () => {
  const lives = [await startSampleLife({ seed: 1 }), await startSampleLife({ seed: 2 })] as const
  for (const life of lives) {
    await life.until(() => isSynced(life) && life.agent()?.health()?.ready() === undefined)
    expect(await life.agent()?.metrics()).toContain('skyhookd_build_info')
  }
  const [first, second] = lives
  first.setKept(false)
  first.agent()?.terminate()
  for (const life of lives) await life.clock.advance(1_000)
  expect(first.agent()?.health()).toBeUndefined()
  expect(second.agent()?.health()?.ready()).toBeUndefined()
  const isStopping = ({ lines }: SampleLife): boolean =>
    lines.some(({ message }) => message === 'agent stopping; running steps continue')
  expect(lives.map(isStopping)).toEqual([true, false])
})

test('an agent leaves no timer behind', async () => {
  const pending = new Set<() => void>()
  /** The same clock, which counts its timers. */
  const counted = (clock: Clock): Clock => ({
    ...clock,
    startTimer(delayMs, callback, options) {
      const cancel = clock.startTimer(
        delayMs,
        () => {
          pending.delete(stop)
          callback()
        },
        options,
      )
      const stop = (): void => {
        pending.delete(stop)
        cancel()
      }
      pending.add(stop)
      return stop
    },
  })
  const leftBehind = Promise.withResolvers<number>()
  const life = await startSampleLife({
    seed: 1,
    async run(settings, platform) {
      const code = await runAgent(settings, { ...platform, clock: counted(platform.clock) })
      await sleep(platform.clock, 60_000)
      leftBehind.resolve(pending.size)
      return code
    },
  })
  await life.apply(packages)
  await life.until(() => isSynced(life))
  expect(pending.size).toBeGreaterThan(0)
  life.setKept(false)
  life.agent()?.terminate()
  await life.clock.advance(90_000)
  expect([await leftBehind.promise, await life.agent()?.ended]).toEqual([0, 0])
})

test('an agent whose ten evictions hang continues to write its Node', async () => {
  const life = await startSampleLife({ seed: 1 })
  const { admin, server } = life
  await life.until(() => isSynced(life))
  for (let n = 0; n < 10; n++) {
    const spec = { nodeName: 'n1', containers: [{ name: 'main', image: 'none' }] }
    await admin.json('POST', podsPath, { body: { metadata: { name: `p${n}` }, spec } })
  }
  let evictions = 0
  server.faults.rules = [
    {
      name: 'hang',
      fault: { kind: 'silent' },
      matches: ({ path }) => path.endsWith('/eviction') && evictions++ >= 0,
    },
  ]
  await life.apply({ tuned: packageSpec('tuned', { type: 'service', services: ['cron'] }) })
  await life.until(() => evictions > 0)
  const tookMs = await life.until(() => evictions === 10 && life.reason()?.includes('DrainBlocked') === true)
  expect(tookMs).toBeLessThan(20_000) // an eviction hangs for 30 s
})
