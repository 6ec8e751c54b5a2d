import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../../test/kit/files/temporary-folder.ts'
import { packageSpec, startSampleLife } from '../../../../test/kit/host/sample-life.ts'
import { createSeededRandom } from '../../../../test/kit/virtual-clock.ts'
import { createHostRoot } from '../../../host/fs/host-root.ts'
import { journalPath } from '../../../host/fs/journal-file.ts'
import { emptyJournal, type Journal, type SkyhookRecord } from '../../../schemas/journal.ts'
import type { PackageProgress, PackageRecord, StartedPackage } from '../../../schemas/package-record.ts'
import type { StageName } from '../../../schemas/skyhook.ts'
import { repairRecords } from './record.ts'

const outputFolder = '/var/lib/skyhook/.agent/output'

type Life = Awaited<ReturnType<typeof startSampleLife>>

/** A host with a package that keeps no logs. Each of its steps runs for this time and writes a line. */
async function startLife(stepMs: number): Promise<Life & { output(): string[] }> {
  const life = await startSampleLife({
    seed: 4,
    runStep({ attempt }) {
      const { disk } = life.host
      const file = disk.create(disk.locate(`${outputFolder}/${attempt}.log`), 0o600)
      disk.create(disk.locate(`${outputFolder}/${attempt}.log.err`), 0o600)
      disk.write(file, Buffer.from('a secret\n'), outputFolder)
      return { durationMs: stepMs }
    },
  })
  await life.apply({
    tuned: { ...packageSpec('tuned'), env: [{ name: 'SKYHOOK_AGENT_WRITE_LOGS', value: 'false' }] },
  })
  const output = (): string[] => {
    const { disk } = life.host
    const folder = disk.locate(outputFolder)
    return folder.node === undefined ? [] : disk.list(folder).map(([name]) => name)
  }
  return { ...life, output }
}

const isComplete =
  (life: Life): (() => boolean) =>
  () =>
    life.status() === 'complete'

test('output that is not to be kept is gone after the rollout, whenever the agent was killed', async () => {
  const isJournal = (name: string): boolean => name === 'fsync:journal' || name === 'fsync:agent/'
  const undisturbed = await startLife(1_000)
  await undisturbed.until(isComplete(undisturbed))
  await undisturbed.clock.advance(10_000)
  expect(undisturbed.output()).toEqual([])
  const writes = undisturbed.events.filter((one) => one.event === 'effect' && isJournal(one.name)).length
  expect(writes).toBeGreaterThan(15)
  for (let at = 1; at <= writes; at++) {
    const life = await startLife(1_000)
    let passed = 0
    life.host.observe((one) => {
      if (one.event === 'effect' && isJournal(one.name) && ++passed === at) life.agent()?.kill()
    })
    await life.until(isComplete(life))
    await life.clock.advance(10_000)
    expect([at, life.output()]).toEqual([at, []])
  }
})

test('the output of a step that still runs stays for the next agent', async () => {
  const life = await startLife(60_000)
  await life.until(() => life.steps().length === 1)
  life.agent()?.kill()
  await life.clock.advance(30_000)
  expect(life.output()).toHaveLength(2)
  await life.until(isComplete(life))
  const lines = life.lines.flatMap(({ message, fields }) => (message === 'a secret' ? [fields] : []))
  expect(lines).toHaveLength(life.steps().length)
})

test('the output of a step that runs and that the journal does not know stays until it has ended', async () => {
  const life = await startLife(60_000)
  await life.until(() => life.steps().length === 1)
  life.agent()?.kill()
  const { disk } = life.host
  const journal = disk.locate(journalPath).node
  if (journal?.kind !== 'file') throw new Error('there is no journal')
  disk.write(journal, Buffer.from(JSON.stringify(emptyJournal('n'))), journalPath)
  await life.clock.advance(30_000)
  expect(life.reason()).toContain('are not in its journal')
  const [stray] = life.events.flatMap((one) => (one.event === 'stepStarted' ? [one.step.attempt] : []))
  expect(life.output()).toEqual([`${stray}.log`, `${stray}.log.err`])
  await life.until(isComplete(life))
  await life.clock.advance(10_000)
  expect(life.output()).toEqual([])
})

const folders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }
const state = 'var/lib/skyhook/demo'
let mount: string
beforeEach(() => {
  mount = temporaryFolder()
  writeHostFile('store/abc/config.json', JSON.stringify(config))
  for (const script of ['one.sh', 'two.sh', 'check.sh']) writeHostFile(`store/abc/skyhook_dir/${script}`, '#!/bin/sh\n')
})

const step = (path: string) => ({
  name: path,
  path,
  arguments: [],
  returncodes: [0],
  on_host: true,
  env: {},
  idempotence: true,
  upgrade_step: false,
})
const config = {
  schema_version: 'v1',
  package_name: 'probe',
  package_version: '1.0.0',
  expected_config_files: [],
  modes: {
    apply: [step('one.sh'), step('two.sh')],
    'apply-check': [step('check.sh')],
    config: [step('two.sh')],
    'config-check': [step('check.sh')],
  },
}

function writeHostFile(path: string, content: string): void {
  mkdirSync(dirname(join(mount, path)), { recursive: true })
  writeFileSync(join(mount, path), content)
}

type Changes = Partial<Pick<StartedPackage, 'name' | 'version' | 'progress' | 'installedBy' | 'lastInterrupt'>>

const failure = { reason: 'StepFailed', message: 'no' } as const
const complete = (stage: StageName): PackageProgress => ({ state: 'complete', stage })

const entry = (changes: Changes): PackageRecord => ({
  name: 'work',
  version: '1.0.0',
  image: 'r/probe',
  progress: complete('apply'),
  restarts: 0,
  work: { digest: 'sha256:abc', generation: 1, inputs: '', packageName: 'probe', packageVersion: '1.0.0' },
  ...changes,
})

const repair = async (
  work: PackageRecord | undefined,
  installedVersions: SkyhookRecord['installedVersions'],
  others: SkyhookRecord['packages'] = {},
): Promise<void> => {
  const packages = { ...(work && { 'work|1.0.0': work }), ...others }
  const journal: Journal = {
    v: 2,
    nodeUid: 'n',
    skyhooks: { demo: { uid: 'u', rev: 1, packages, reboots: {}, flags: {}, installedVersions } },
  }
  const ports = {
    root: createHostRoot(mount, createSeededRandom(1)),
    folders,
    contentOf: () => '/store/abc',
    nowMs: Date.UTC(2026, 0, 2),
  }
  await repairRecords(ports, journal)
}

const flags = (): string[] => {
  const folder = join(mount, state, 'flags')
  if (!existsSync(folder)) return []
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  return found.map(({ parentPath, name }) => relative(folder, join(parentPath, name))).sort()
}

describe('what an agent left unwritten when it died', () => {
  test('a complete stage of the journal gets its flags, the summary of its checks and its history', async () => {
    await repair(entry({}), { work: '1.0.0' })
    expect(flags()).toEqual([
      'apply-check_ALL_CHECKED',
      'check_results',
      'probe/1.0.0/one.sh_W11fWzBd',
      'probe/1.0.0/two.sh_W11fWzBd',
    ])
    expect(JSON.parse(readFileSync(join(mount, state, 'history/probe.json'), 'utf8'))).toMatchObject({
      'current-version': '1.0.0',
    })
  })

  test('steps that ended in a running stage get their flags alone', async () => {
    const attemptFields = { mode: 'apply' as const, bootId: 'b', unit: 'u', startedAtMs: 0 }
    const steps = [
      { ...attemptFields, id: '1', index: 0, path: 'one.sh', result: { result: 'ok', endedAtMs: 1 } as const },
      {
        ...attemptFields,
        id: '2',
        index: 1,
        path: 'two.sh',
        result: { result: 'failed', endedAtMs: 1, message: 'no' } as const,
      },
    ]
    const attempt = { number: 1, startedAtMs: 0, inputs: '', steps }
    await repair(entry({ progress: { state: 'retrying', stage: 'apply', attempt, retryAtMs: 0, failure } }), {})
    expect(flags()).toEqual(['probe/1.0.0/one.sh_W11fWzBd'])
    expect(existsSync(join(mount, state, 'history'))).toBe(false)
  })

  test.each<[string, PackageProgress]>([
    ['of what brought it there, while config runs', { state: 'due', stage: 'config' }],
    ['of config, while its interrupt is under way', { state: 'due', stage: 'interrupt' }],
    ['of config, while post-interrupt runs', { state: 'due', stage: 'post-interrupt' }],
  ])('%s', async (_, progress) => {
    await repair(entry({ progress, installedBy: 'apply' }), {})
    const config = progress.stage === 'config' ? [] : ['config-check_ALL_CHECKED']
    const applyFlags = ['probe/1.0.0/one.sh_W11fWzBd', 'probe/1.0.0/two.sh_W11fWzBd']
    expect(flags()).toEqual(['apply-check_ALL_CHECKED', 'check_results', ...config, ...applyFlags])
  })

  test('a record is added once, and one that is there keeps its time', async () => {
    writeHostFile(`${state}/flags/probe/1.0.0/two.sh_W11fWzBd`, 'before')
    await repair(entry({ progress: complete('config') }), { work: '1.0.0' })
    const history = readFileSync(join(mount, state, 'history/probe.json'), 'utf8')
    await repair(entry({ progress: complete('config') }), { work: '1.0.0' })
    expect(readFileSync(join(mount, state, 'flags/probe/1.0.0/two.sh_W11fWzBd'), 'utf8')).toBe('before')
    expect(readFileSync(join(mount, state, 'history/probe.json'), 'utf8')).toBe(history)
  })

  test.each(['2.0.0', 'uninstalled'])(
    'no history entry is added where another package of the same image wrote last: %s',
    async (last) => {
      const history = [last, '1.0.0'].map((version) => ({ version, time: '' }))
      writeHostFile(`${state}/history/probe.json`, JSON.stringify({ 'current-version': last, history }))
      const before = readFileSync(join(mount, state, 'history/probe.json'), 'utf8')
      await repair(entry({ progress: complete('config') }), { work: '1.0.0', other: last })
      expect(readFileSync(join(mount, state, 'history/probe.json'), 'utf8')).toBe(before)
    },
  )

  test('a history is not added while another package of the image is uninstalled and recorded so', async () => {
    const history = ['uninstalled', '1.0.0', '3.0.0'].map((version) => ({ version, time: '' }))
    writeHostFile(`${state}/history/probe.json`, JSON.stringify({ 'current-version': 'uninstalled', history }))
    const before = readFileSync(join(mount, state, 'history/probe.json'), 'utf8')
    const uninstalling = {
      'old|3.0.0': { ...entry({ name: 'old', version: '3.0.0', progress: { state: 'due', stage: 'uninstall' } }) },
    }
    await repair(entry({ progress: complete('config') }), { work: '1.0.0', old: '3.0.0' }, uninstalling)
    expect(readFileSync(join(mount, state, 'history/probe.json'), 'utf8')).toBe(before)
  })

  test('an interrupt that was made gets its flags, and a later configuration gets none', async () => {
    const lastInterrupt = { type: 'service', services: ['cron'] } as const
    const folder = join(mount, state, 'interrupts/flags')
    await repair(entry({ progress: complete('config'), lastInterrupt }), {})
    expect(existsSync(folder)).toBe(false)
    await repair(entry({ progress: complete('interrupt'), lastInterrupt }), {})
    const flag = join(folder, 'demo-u-1_work_1.0.0', 'service_restart_0.complete')
    const written = readFileSync(flag, 'utf8')
    writeFileSync(flag, 'before')
    await repair(entry({ progress: complete('post-interrupt'), lastInterrupt }), {})
    expect([Number(written) > 0, readFileSync(flag, 'utf8')]).toEqual([true, 'before'])
  })

  test('a temporary file of a write that was cut off is removed', async () => {
    writeHostFile(`${state}/flags/check_results.0123456789ab.tmp`, '')
    writeHostFile(`${state}/work-1.0.0-u-1/skyhook_dir/run.sh.0123456789ab.tmp`, '')
    writeHostFile(`${state}/work-1.0.0-u-1/skyhook_dir/theirs.tmp`, '')
    await repair(undefined, {})
    expect(
      readdirSync(join(mount, state), { recursive: true }).filter((path) => String(path).endsWith('.tmp')),
    ).toEqual(['work-1.0.0-u-1/skyhook_dir/theirs.tmp'])
  })

  test('a package without the content of its image is left as it is', async () => {
    rmSync(join(mount, 'store'), { recursive: true })
    await repair(entry({}), { work: '1.0.0' })
    expect(flags()).toEqual([])
  })
})
