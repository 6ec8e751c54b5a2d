import { expect, test } from 'vitest'
import { packageSpec, startSampleLife } from '../../test/kit/host/sample-life.ts'
import { filesOf } from '../../test/kit/files/host-files.ts'
import { journalPath } from '../host/fs/journal-file.ts'
import { emptyJournal, type SkyhookRecord } from '../schemas/journal.ts'

const halfHourMs = 1_800_000

/** The state after five processes: work without progress. */
const leftWork = (uid: string, startedAtMs: number): SkyhookRecord => ({
  uid,
  rev: 1,
  reboots: {},
  flags: {},
  installedVersions: {},
  lifecycle: { startedAtMs, generation: 1 },
  packages: {
    'tuned|1.0.0': {
      name: 'tuned',
      version: '1.0.0',
      image: 'registry.test/tuned',
      restarts: 0,
      progress: { state: 'due', stage: 'apply' },
    },
  },
})

test('an agent that stands down says so on its Node, keeps a slot, starts no step, and completes half an hour later', async () => {
  const life = await startSampleLife({ seed: 1, isKept: false })
  const files = filesOf(life.host.disk)
  await life.until(() => life.node() !== undefined)
  await life.apply({ tuned: packageSpec('tuned') })
  const startedAtMs = life.clock.monotonicMs() // the clock at the boot of the host
  const [skyhook] = life.server.objects('skyhooks')
  const skyhooks = { s: leftWork(skyhook?.metadata.uid ?? '', startedAtMs) }
  files.write(journalPath, JSON.stringify({ ...emptyJournal(life.node()?.metadata.uid ?? ''), skyhooks }))
  files.write('/run/skyhook/crash-loop', JSON.stringify({ place: 's(tuned|1.0.0 apply 0)', startedAtMs, crashes: 4 }))
  life.setKept(true)
  await life.until(() => life.reason()?.includes('CrashLoop') === true)
  await life.clock.advance(halfHourMs - 60_000)
  expect([life.status(), life.steps()]).toEqual(['blocked', []])
  expect(life.server.objects('leases').map(({ metadata }) => metadata.name)).toContainEqual(
    expect.stringMatching(/\.(slot|node)-/) as unknown,
  )
  await life.until(() => life.status() === 'complete', 120_000)
  expect(life.steps()).toEqual(['tuned apply', 'tuned apply-check', 'tuned config', 'tuned config-check'])
})
