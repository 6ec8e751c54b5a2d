import { expect, test } from 'vitest'
import { followTruth } from './host-truth.ts'
import type { FileNode } from './inodes.ts'
import { packageImage } from './package-image.ts'
import { packageSpec, startSampleLife } from './sample-life.ts'

test('an agent on a simulated host installs, restarts a service, reboots and uninstalls', async () => {
  const life = await startSampleLife({ seed: 1 })
  const { host, steps } = life
  host.systemd.addService('web.service', { restart: () => ({ durationMs: 400, result: 'done' }) })
  await life.apply({
    tuned: packageSpec('tuned', { type: 'service', services: ['web'] }),
    kernel: packageSpec('kernel', { type: 'reboot' }),
  })
  const firstBoot = host.bootId()
  await life.until(() => life.status() === 'complete')
  expect(host.bootId()).not.toBe(firstBoot)
  expect(steps().toSorted()).toMatchInlineSnapshot(`
    [
      "kernel apply",
      "kernel apply-check",
      "kernel config",
      "kernel config-check",
      "kernel post-interrupt",
      "kernel post-interrupt-check",
      "tuned apply",
      "tuned apply-check",
      "tuned config",
      "tuned config-check",
      "tuned post-interrupt",
      "tuned post-interrupt-check",
    ]
  `)
  await life.apply({ tuned: null as never })
  await life.until(() => steps().includes('tuned uninstall-check') && life.status() === 'complete')
  expect(life.lines.filter(({ level }) => level === 'error')).toEqual([])
})

test('a host knows from when to when it is out of service', async () => {
  const life = await startSampleLife({ seed: 2 })
  const truth = followTruth(life.host, ({ mode }) => mode === 'post-interrupt-check')
  await life.apply({ kernel: packageSpec('kernel', { type: 'reboot' }) })
  await life.until(() => life.steps().includes('kernel apply'))
  expect([truth.isOut(), truth.isInterrupted(), [...truth.openPackages()]]).toEqual([true, false, ['s/kernel']])
  expect(life.node()?.spec?.unschedulable).toBe(true)
  await life.until(() => life.host.power() === 'down')
  expect(truth.isInterrupted()).toBe(true)
  await life.until(() => life.steps().includes('kernel post-interrupt-check'))
  expect([truth.isOut(), truth.isInterrupted()]).toEqual([true, false])
  await life.until(() => !truth.isOut())
  await life.until(() => life.status() === 'complete' && life.node()?.spec?.unschedulable !== true)
  truth.stop()
})

test('steps, exit codes and effects of packages are decided by a script', async () => {
  let attempts = 0
  const life = await startSampleLife({
    seed: 3,
    runStep: ({ mode }, script) => {
      expect(script).toContain(`tuned 1.0.0 ${mode}`)
      const isFirst = mode === 'apply' && attempts++ === 0
      return { durationMs: 200, exitCode: isFirst ? 4 : 0, act: () => life.host.disk.setFull(isFirst) }
    },
  })
  await life.apply({ tuned: packageSpec('tuned') })
  await life.until(() => life.reason()?.includes('ENOSPC') === true)
  expect(life.steps()).toEqual(['tuned apply'])
  life.host.disk.setFull(false)
  await life.until(() => life.status() === 'complete')
  expect(life.steps()).toEqual([
    'tuned apply',
    'tuned apply',
    'tuned apply-check',
    'tuned config',
    'tuned config-check',
  ])
})

test('a package whose spec is corrected completes although its first step does not run again', async () => {
  let isBroken = true
  const life = await startSampleLife({
    seed: 6,
    registry: ({ repository, tag = '' }) => packageImage(repository, tag, undefined, ['apply']),
    runStep: ({ mode }) => ({ durationMs: 200, exitCode: isBroken && mode === 'apply-check' ? 1 : 0 }),
  })
  await life.apply({ tuned: packageSpec('tuned') })
  await life.until(() => life.reason()?.includes('CheckFailed') === true)
  isBroken = false
  await life.apply({ tuned: { ...packageSpec('tuned'), env: [{ name: 'LEVEL', value: '2' }] } })
  await life.until(() => life.status() === 'complete')
  expect(life.steps().filter((step) => step === 'tuned apply')).toHaveLength(1)
})

test('an agent that expects many others looks into the ledger before it fetches layers', async () => {
  const looksBefore: number[] = []
  const life = await startSampleLife({ seed: 5, settings: { estimatedNodeCount: 1_000 } })
  life.host.observe(({ event }) => {
    if (event !== 'imageStored') return
    const looks = life.server.audit.filter(({ name }) => name.endsWith('.ledger'))
    looksBefore.push(looks.length)
  })
  await life.apply({ kernel: packageSpec('kernel', { type: 'reboot' }) })
  await life.until(() => life.status() === 'complete')
  expect(looksBefore).toEqual([expect.any(Number)])
  expect(looksBefore[0]).toBeGreaterThan(0)
})

test('an agent logs what a step writes as it comes, and the one after it continues there', async () => {
  const life = await startSampleLife({
    seed: 6,
    runStep: ({ mode }) => ({ durationMs: mode === 'apply' ? 5_000 : 100 }),
  })
  const { disk } = life.host
  await life.apply({ tuned: packageSpec('tuned') })
  await life.until(() => life.steps().includes('tuned apply'))
  const folder = '/var/log/skyhook/s/tuned/1.0.0'
  const name = disk.list(disk.locate(folder)).find(([file]) => file.endsWith('.log'))?.[0]
  const write = (text: string): void => {
    const { node, path } = disk.locate(`${folder}/${name}`)
    disk.write(node as FileNode, Buffer.from(text), path)
  }
  const printed = (): string[] =>
    life.lines.flatMap(({ fields, message }) => ('mode' in fields && fields.mode === 'apply' ? [message] : []))
  write('one\n')
  await life.until(() => printed().includes('one'), 1_000)
  life.agent()?.kill()
  write('one\ntwo\n')
  await life.until(() => printed().includes('two'), 4_000)
  expect(life.steps()).toEqual(['tuned apply'])
  await life.until(() => life.status() === 'complete')
  expect(printed()).toEqual(['step started', 'one', 'step is running', 'two', 'step ended'])
  expect(life.lines.find(({ message }) => message === 'step ended')?.fields).toMatchObject({
    skyhook: 's',
    package: 'tuned',
    attempt: 1,
    result: 'ok',
    exitCode: 0,
  })
  const before = life.lines.length
  life.agent()?.kill()
  await life.until(() => life.lines.slice(before).some(({ message }) => message === 'synced'))
  const repeated = life.lines.slice(before).flatMap(({ fields, message }) => ('repeated' in fields ? [message] : []))
  expect(repeated).toEqual(['step ended', 'step ended', 'step ended', 'step ended'])
})
