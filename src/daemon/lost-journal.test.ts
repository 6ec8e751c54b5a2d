import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FakeApiServer, startFakeApiServer } from '../../test/support/fake-api-server.ts'
import { type FakePlatform, startFakePlatform } from '../../test/support/fake-platform.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../test/support/virtual-clock.ts'
import { reasonKey, statusKey } from '../schemas/annotations.ts'
import { skyhooksPath, skyhookTypeMeta } from '../schemas/api.ts'
import { emptyJournal } from '../schemas/journal.ts'
import { runAgent } from './agent.ts'

const nodesPath = '/api/v1/nodes'
const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const agentFolder = 'var/lib/skyhook/.agent'
const oldId = '0123456789abcdef'
const oldUnit = `skyhookd-fake-apply-run.sh-${oldId}.service`
/** What the agent before left, and what only a journal tells from leftovers. */
const belongings = [
  `${agentFolder}/results/${oldId}`,
  `run/skyhook/${oldId}.env`,
  `run/skyhook/${oldId}.note`,
  `${agentFolder}/images/${'b'.repeat(64)}/config.json`,
]

let api: FakeApiServer
let clock: VirtualClock
let host: FakePlatform
let collected: number
let ended: Promise<number> | undefined

beforeEach(async () => {
  api = await startFakeApiServer([leasesPath, skyhooksPath, '/api/v1/pods', '/api/v1/namespaces/default/events'])
  clock = createVirtualClock()
  api.put(nodesPath, { metadata: { name: 'n1', labels: { pool: 'x' } }, spec: {}, status: { conditions: [] } })
  const random = createSeededRandom(1)
  host = await startFakePlatform({ nodeName: 'n1', apiUrl: api.url, clock, random })
  collected = 0
  for (const path of belongings) write(path, 'x')
})
afterEach(async () => {
  host.terminate()
  await pass(async () => (await Promise.race([ended, sleep(1, 'running')])) !== 'running')
  await host[Symbol.asyncDispose]()
  await api.stop()
})

function write(path: string, text: string): void {
  mkdirSync(dirname(join(host.folder, path)), { recursive: true })
  writeFileSync(join(host.folder, path), text)
}

function start(journal: string | undefined): void {
  if (journal !== undefined) write(`${agentFolder}/journal.json`, journal)
  const { platform } = host
  const openImageStore: typeof platform.openImageStore = (path) => ({
    ...platform.openImageStore(path),
    collect: async () => (collected++, []),
  })
  ended = runAgent(host.settings, { ...platform, openImageStore })
}

/** Lets virtual time pass, and the sockets answer, until the condition holds. */
async function pass(isReached: () => boolean | Promise<boolean>): Promise<void> {
  for (const startMs = performance.now(); performance.now() - startMs < 20_000; ) {
    await clock.advance(20)
    if (await isReached()) return
    await sleep(1)
  }
  expect.fail('the condition does not hold after 20 s')
}

const annotation = (key: string): string | undefined =>
  (api.get(nodesPath, 'n1')?.metadata['annotations'] as Record<string, string> | undefined)?.[key]
const isSynced = (): boolean => host.messages().includes('synced')
const remaining = (): string[] => belongings.filter((path) => existsSync(join(host.folder, path)))

function createSkyhook(): void {
  api.put(skyhooksPath, {
    ...skyhookTypeMeta,
    metadata: { name: 's', generation: 1 },
    spec: {
      nodeSelectors: { matchLabels: { pool: 'x' } },
      packages: { fake: { version: '1.0.0', image: 'registry.test/fake' } },
    },
  })
}

describe('what an agent removes at its start', () => {
  const whole = JSON.stringify(emptyJournal('n'))
  test.each([
    ['cut', whole.slice(0, -3), false],
    ['empty', '', false],
    ['not a journal', '{"v":2}', false],
    ['of a newer agent', JSON.stringify({ ...emptyJournal('n'), v: 99 }), false],
    ['whole', whole, true],
  ])('an agent whose journal is %s removes nothing that a journal could still know', async (_, journal, isTrusted) => {
    start(journal)
    await pass(isSynced)
    createSkyhook()
    await clock.advance(5_000)
    await pass(() => isTrusted === collected > 0)
    expect(remaining()).toEqual(isTrusted ? belongings.slice(3) : belongings)
    expect(collected > 0).toBe(isTrusted)
  })

  test('a damaged journal is kept beside the new one, and one of a newer agent stays', async () => {
    start('{"v":2')
    await pass(isSynced)
    createSkyhook()
    await pass(() => annotation(statusKey('s')) === 'complete')
    const names = readdirSync(join(host.folder, agentFolder)).filter((name) => name.startsWith('journal.json'))
    expect(names.sort()).toEqual(['journal.json', expect.stringMatching(/^journal\.json\.unreadable-\d+$/)])
    await clock.advance(60_000)
    expect([collected, remaining()]).toEqual([0, belongings])
  })

  test('an agent with a journal of a newer one says so and changes nothing', async () => {
    const newer = JSON.stringify({ ...emptyJournal('n'), v: 99 })
    start(newer)
    await pass(isSynced)
    createSkyhook()
    await pass(() => annotation(reasonKey('s'))?.includes('written by a newer agent') === true)
    expect(readFileSync(join(host.folder, agentFolder, 'journal.json'), 'utf8')).toBe(newer)
  })
})

describe('steps that run and that no journal knows', () => {
  test.each([
    ['is damaged', '{"v":2'],
    ['is gone', undefined],
    ['does not know them', JSON.stringify(emptyJournal('n'))],
  ])('nothing starts beside a running step while the journal %s, and the Node says why', async (_, journal) => {
    host.systemd.hostUnits.set(oldUnit, { activeState: 'activating', subState: 'start' })
    host.systemd.hostUnits.set('skyhookd-fake-old.service', { activeState: 'failed', subState: 'failed' })
    start(journal)
    await pass(isSynced)
    createSkyhook()
    await pass(() => annotation(reasonKey('s'))?.includes(oldUnit) === true)
    expect(annotation(reasonKey('s'))).toContain('HostUnusable')
    await clock.advance(30_000)
    expect(annotation(statusKey('s'))).not.toBe('complete')
    expect(remaining()).toEqual(belongings) // the step still writes there
    host.systemd.hostUnits.delete(oldUnit)
    host.systemd.jobRemoved(oldUnit)
    await pass(() => annotation(statusKey('s')) === 'complete')
    expect(annotation(reasonKey('s'))).toBeUndefined()
  })
})
