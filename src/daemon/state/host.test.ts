import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Variant } from 'dbus-next/lib/variant.js'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakePlatform, startFakePlatform } from '../../../test/support/fake-platform.ts'
import { createVirtualClock, type VirtualClock } from '../../../test/support/virtual-clock.ts'
import type { BusConnection } from '../../host/dbus/reconnecting.ts'
import { type HostSource, openHost } from './host.ts'

let clock: VirtualClock
let platform: FakePlatform
let connection: BusConnection
let host: HostSource
let wakes: number
let shutdown: AbortController

beforeEach(async () => {
  clock = createVirtualClock()
  const random = { number: () => 0, hex: (bytes: number) => '00'.repeat(bytes) }
  platform = await startFakePlatform({ nodeName: 'n', apiUrl: 'http://127.0.0.1:1', clock, random })
  connection = platform.platform.connectBus()
  wakes = 0
  shutdown = new AbortController()
  host = await openHost({
    ...platform.platform,
    connection,
    folders: platform.settings,
    wake: () => wakes++,
    signal: shutdown.signal,
  })
  await connection.withBus(async () => undefined)
  await host.checkFitness()
})
afterEach(async () => {
  shutdown.abort()
  connection.close()
  await platform[Symbol.asyncDispose]()
})

const shell = (): string => join(platform.folder, 'bin/sh')
const noShell = { state: 'unusable', reason: 'HostUnusable', message: expect.stringContaining('no /bin/sh') as unknown }

/** Lets virtual time pass, and the files answer. */
async function pass(ms: number): Promise<void> {
  await clock.advance(ms)
  await sleep(20)
  // the look that fell due is over when the next one is scheduled, or nothing is left to look for
  for (let turn = 0; turn < 500 && clock.pendingTimers === 0 && host.state().state !== 'usable'; turn++) await sleep(2)
}

test('a fit host is usable, and nobody looks at it while there is no work', async () => {
  expect(host.state()).toEqual({ state: 'usable' })
  expect(clock.pendingTimers).toBe(0)
  const before = wakes
  await host.checkFitness()
  expect(wakes).toBe(before)
})

test('an unfit host is looked at after 5 s, later each minute, until it is fit', async () => {
  rmSync(shell())
  expect(await host.checkFitness()).toContain('the host has no /bin/sh')
  expect(host.state()).toEqual(noShell)
  expect(JSON.parse(host.report() ?? '')).toMatchObject({ findings: [{ id: 'missing-program' }] })
  expect(platform.messages()).toContain('preflight of the host has findings')
  await pass(5_000) // 10 s to the next
  writeFileSync(shell(), '')
  const before = wakes
  await pass(9_000)
  expect(host.state()).toEqual(noShell)
  await pass(1_000)
  expect(host.state()).toEqual({ state: 'usable' })
  expect(wakes).toBe(before + 1)
  expect(clock.pendingTimers).toBe(0)
})

test('a host that stays unfit is looked at once a minute at most', async () => {
  rmSync(shell())
  await host.checkFitness()
  for (const ms of [5_000, 10_000, 20_000, 40_000, 60_000]) await pass(ms)
  writeFileSync(shell(), '')
  await pass(59_000)
  expect(host.state()).toEqual(noShell)
  await pass(1_000)
  expect(host.state()).toEqual({ state: 'usable' })
})

test('systemd is asked for its version again on every new connection to the bus', async () => {
  expect(host.state()).toEqual({ state: 'usable' })
  platform.systemd.bus.answers('Get', { signature: 'v', body: [new Variant('s', '239')] })
  platform.systemd.bus.hangUpAll()
  for (let turn = 0; turn < 100 && host.state().state === 'usable'; turn++) await pass(50)
  for (let turn = 0; turn < 100 && !JSON.stringify(host.state()).includes('HostUnusable'); turn++) await pass(50)
  expect(host.state()).toMatchObject({ message: expect.stringContaining('systemd 239') as unknown })
})

test('a bus that is away outweighs what was found on the host', async () => {
  rmSync(shell())
  await host.checkFitness()
  await platform.systemd.bus.stop()
  for (let turn = 0; turn < 100 && JSON.stringify(host.state()).includes('no /bin/sh'); turn++) await pass(10)
  expect(host.state()).toMatchObject({ reason: 'HostUnreachable' })
})

test('an agent that stops leaves no look behind', async () => {
  rmSync(shell())
  await host.checkFitness()
  expect(clock.pendingTimers).toBe(1)
  shutdown.abort()
  expect(clock.pendingTimers).toBe(0)
})
