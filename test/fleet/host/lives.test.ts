import { expect, test } from 'vitest'
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
