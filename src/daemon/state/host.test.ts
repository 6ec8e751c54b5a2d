import { afterEach, beforeEach, expect, test } from 'vitest'
import { createHostFiles, type HostFiles } from '../../../test/kit/files/host-files.ts'
import { settingsOf } from '../../../test/kit/objects/sample-settings.ts'
import { connectSystemd, type SystemdConnection } from '../../../test/kit/host/systemd-connection.ts'
import type { VirtualClock } from '../../../test/kit/virtual-clock.ts'
import { type HostSource, openHost } from './host.ts'

let systemd: SystemdConnection
let clock: VirtualClock
let files: HostFiles
let host: HostSource
let messages: string[]
let wakes: number
let shutdown: AbortController

beforeEach(async () => {
  systemd = connectSystemd()
  clock = systemd.clock
  files = createHostFiles(clock)
  files.write('/proc/sys/kernel/random/boot_id', 'b1b1b1b1-0000-4000-8000-b1b1b1b1b1b1\n')
  files.write('/bin/sh', '', 0o755)
  messages = []
  const log = (_fields: object, message: string): void => void messages.push(message)
  wakes = 0
  shutdown = new AbortController()
  host = await openHost({
    root: files.root,
    connection: systemd.connection,
    clock,
    log: { debug: log, info: log, warn: log, error: log },
    folders: settingsOf('n', '/'),
    wake: () => wakes++,
    signal: shutdown.signal,
  })
  await systemd.connection.withBus(async () => undefined)
  await host.checkFitness()
})
afterEach(() => {
  shutdown.abort()
  systemd.connection.close()
})

const noShell = { state: 'unusable', reason: 'HostUnusable', message: expect.stringContaining('no /bin/sh') as unknown }

test('a fit host is usable, and nobody looks at it while there is no work', async () => {
  expect(host.state()).toEqual({ state: 'usable' })
  expect(clock.pendingTimers).toBe(0)
  const before = wakes
  await host.checkFitness()
  expect(wakes).toBe(before)
})

test('an unfit host is looked at after 5 s, later each minute, until it is fit', async () => {
  files.remove('/bin/sh')
  expect(await host.checkFitness()).toContain('the host has no /bin/sh')
  expect(host.state()).toEqual(noShell)
  expect(JSON.parse(host.report() ?? '')).toMatchObject({ findings: [{ id: 'missing-program' }] })
  expect(messages).toContain('preflight of the host has findings')
  await clock.advance(5_000) // 10 s to the next
  files.write('/bin/sh', '', 0o755)
  const before = wakes
  await clock.advance(9_000)
  expect(host.state()).toEqual(noShell)
  await clock.advance(1_000)
  expect(host.state()).toEqual({ state: 'usable' })
  expect(wakes).toBe(before + 1)
  expect(clock.pendingTimers).toBe(0)
})

test('a host that stays unfit is looked at once a minute at most', async () => {
  files.remove('/bin/sh')
  await host.checkFitness()
  for (const ms of [5_000, 10_000, 20_000, 40_000, 60_000]) await clock.advance(ms)
  files.write('/bin/sh', '', 0o755)
  await clock.advance(59_000)
  expect(host.state()).toEqual(noShell)
  await clock.advance(1_000)
  expect(host.state()).toEqual({ state: 'usable' })
})

test('systemd is asked for its version again on every new connection to the bus', async () => {
  expect(host.state()).toEqual({ state: 'usable' })
  systemd.setVersion('239')
  systemd.hangUp()
  await clock.advance(1_000)
  expect(host.state()).toMatchObject({ message: expect.stringContaining('systemd 239') as unknown })
})

test('a bus that is away outweighs what was found on the host', async () => {
  files.remove('/bin/sh')
  await host.checkFitness()
  systemd.simulated.bus.setUp(false)
  await clock.advance(0)
  expect(host.state()).toMatchObject({ reason: 'HostUnreachable' })
})

test('an agent that stops leaves no look behind', async () => {
  files.remove('/bin/sh')
  await host.checkFitness()
  expect(clock.pendingTimers).toBe(1)
  shutdown.abort()
  expect(clock.pendingTimers).toBe(0)
})

test('the Node says who has a port of the agent, for as long as it is taken, and the host stays usable', async () => {
  files.write('/proc/self/net/tcp', '   0: 00000000:2503 00000000:0000 0A 0:0 00:0 0  1001        0 19003 1 0 100\n')
  files.write('/etc/passwd', 'app:x:1001:1001::/:/bin/sh\n')
  host.portTaken('metrics', { port: 9475, code: 'EADDRINUSE' })
  await host.checkFitness()
  await host.checkFitness()
  expect(JSON.parse(host.report() ?? '')).toMatchObject({
    findings: [
      {
        id: 'port-taken',
        severity: 'warning',
        message: 'port 9475, on which the agent serves metrics, is taken by a program of app (uid 1001)',
        remedy:
          "Find the program on the host with ss -ltnp 'sport = :9475' and end it, or set metrics.port of the chart",
      },
    ],
  })
  expect(host.state()).toEqual({ state: 'usable' })
  host.portTaken('metrics', undefined)
  await host.checkFitness()
  await host.checkFitness()
  expect(JSON.parse(host.report() ?? '')).toMatchObject({ findings: [] })
})

test('a port that the agent may not listen on is a finding with the capability that it needs', async () => {
  host.portTaken('health', { port: 336, code: 'EACCES' })
  await host.checkFitness()
  await host.checkFitness()
  expect(host.report()).toContain('the agent cannot serve health on port 336 (EACCES)')
  expect(host.report()).toContain('NET_BIND_SERVICE')
})
