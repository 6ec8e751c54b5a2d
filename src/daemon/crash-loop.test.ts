import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeApiServer, startFakeApiServer } from '../../test/support/fake-api-server.ts'
import { type FakePlatform, startFakePlatform } from '../../test/support/fake-platform.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../test/support/virtual-clock.ts'
import { reasonKey, statusKey } from '../schemas/annotations.ts'
import { skyhooksPath, skyhookTypeMeta } from '../schemas/api.ts'
import { emptyJournal, type SkyhookRecord } from '../schemas/journal.ts'
import { runAgent } from './agent.ts'

const nodesPath = '/api/v1/nodes'
const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'

let api: FakeApiServer
let clock: VirtualClock
let host: FakePlatform
let ended: Promise<number>

beforeEach(async () => {
  api = await startFakeApiServer([leasesPath, skyhooksPath, '/api/v1/pods', '/api/v1/namespaces/default/events'])
  clock = createVirtualClock()
  host = await startFakePlatform({ nodeName: 'n1', apiUrl: api.url, clock, random: createSeededRandom(1) })
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

/** What the last of five processes left: work that has gone no further. */
function leaveWork(skyhookUid: string, nodeUid: string): void {
  const record: SkyhookRecord = {
    uid: skyhookUid,
    rev: 1,
    reboots: {},
    flags: {},
    installedVersions: {},
    lifecycle: { startedAtMs: clock.steadyMs(), generation: 1 },
    packages: {
      'fake|1.0.0': {
        name: 'fake',
        version: '1.0.0',
        image: 'registry.test/fake',
        restarts: 0,
        progress: { state: 'due', stage: 'apply' },
      },
    },
  }
  const journal = { ...emptyJournal(nodeUid), skyhooks: { s: record } }
  write('var/lib/skyhook/.agent/journal.json', JSON.stringify(journal))
  const trace = { place: 's(fake|1.0.0 apply 0)', startedAtMs: clock.steadyMs(), crashes: 4 }
  write('run/skyhook/crash-loop', JSON.stringify(trace))
}

test('an agent that stands down says so on its Node, keeps a slot, starts no step, and completes half an hour later', async () => {
  const node = api.put(nodesPath, { metadata: { name: 'n1' }, spec: {}, status: { conditions: [] } })
  const packages = { fake: { version: '1.0.0', image: 'registry.test/fake' } }
  const spec = { interruptionBudget: { count: 1 }, packages }
  const skyhook = api.put(skyhooksPath, { ...skyhookTypeMeta, metadata: { name: 's', generation: 1 }, spec })
  leaveWork(skyhook.metadata.uid, node.metadata.uid)
  ended = runAgent(host.settings, host.platform)
  await pass(() => (annotation(reasonKey('s')) ?? '').includes('CrashLoop'))
  for (let minute = 0; minute < 29; minute++) {
    await clock.advance(60_000)
    await sleep(5)
  }
  const isStep = ({ message }: { readonly message: string }): boolean => message.includes('step')
  expect([annotation(statusKey('s')), host.lines.filter(isStep)]).toEqual(['blocked', []])
  expect(JSON.stringify(api.requests.map(({ body }) => body))).toContain('slot-kind')
  await clock.advance(60_000)
  await pass(() => annotation(statusKey('s')) === 'complete')
})
