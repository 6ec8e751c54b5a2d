import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import { guardedStep } from '../../../test/kit/node-simulator/package-content.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import {
  flagMarker,
  flagName,
  hasStepFlag,
  interruptFlagNames,
  publishCheckResults,
  publishInterruptFlags,
  publishStart,
  publishStepFlag,
  pythonRepr,
  removeStepFlags,
} from './flags.ts'

const base = guardedStep('a.sh')
const config: PackageConfig = { packageName: 'probe', packageVersion: '1.0.0', expectedConfigFiles: [], modes: {} }
const state = '/var/lib/skyhook/demo'

let folder: string
let host: HostRoot

beforeEach(() => ({ folder, host } = temporaryHost()))

const tree = async (path: string): Promise<string[]> => (await readdir(join(folder, path), { recursive: true })).sort()
const content = async (path: string): Promise<string> => (await readFile(join(folder, state, path))).toString()

describe('names are the operator’s to the letter', () => {
  test.each([
    [[], [0], 'W11fWzBd'],
    [['apply'], [0], 'WydhcHBseSddX1swXQ=='],
    [['apply_check'], [0], 'WydhcHBseV9jaGVjayddX1swXQ=='],
    [['a', 'b'], [0, 1], 'WydhJywgJ2InXV9bMCwgMV0='],
    [['env:FOO'], [0], 'WydlbnY6Rk9PJ11fWzBd'],
    [["it's"], [0], 'WyJpdCdzIl1fWzBd'],
    [['say "hi"'], [0], 'WydzYXkgImhpIiddX1swXQ=='],
    [['é\n'], [0], 'WyfDqVxuJ11fWzBd'],
    [['\u200b'], [0], 'WydcdTIwMGInXV9bMF0='],
    [['???>>>?'], [0], 'Wyc/Pz8+Pj4/J11fWzBd'],
  ])('the flag of arguments %j and return codes %j has the name the operator gives it', (args, returncodes, marker) => {
    expect(flagMarker({ arguments: args, returncodes })).toBe(marker)
    expect(flagName({ path: 'sub/b.sh', arguments: args, returncodes })).toBe(`sub/b.sh_${marker}`)
  })
})

describe('names that no file system takes', () => {
  const stepWithLongName = { ...base, arguments: ['x'.repeat(300)] }

  test('a flag name that is too long becomes its hash', async () => {
    expect(flagName(stepWithLongName)).toMatch(/^a\.sh_sha256-[0-9a-f]{64}$/)
    await publishStepFlag(host, state, config, stepWithLongName, 0)
    expect(await hasStepFlag(host, state, config, stepWithLongName)).toBe(true)
    expect(await hasStepFlag(host, state, config, { ...stepWithLongName, returncodes: [1] })).toBe(false)
  })

  test('a flag name with a path of maximal length becomes its hash', async () => {
    const step = { ...stepWithLongName, path: `sub/${'p'.repeat(255)}` }
    expect(flagName(step)).toMatch(/^sub\/sha256-[0-9a-f]{64}$/)
    await publishStepFlag(host, state, config, step, 0)
  })

  test('every flag name fits the file system and is unique to its step', () => {
    const steps = fc.record({
      path: fc.constantFrom('a', 'd/a'),
      arguments: fc.array(fc.string({ maxLength: 400, size: 'max' }), { maxLength: 20 }),
      returncodes: fc.array(fc.integer()),
    })
    fc.assert(
      fc.property(steps, steps, (one, other) => {
        expect(
          flagName(one)
            .split('/')
            .every((part) => Buffer.byteLength(part) <= 255),
        ).toBe(true)
        expect(flagName(one) === flagName(other)).toBe(JSON.stringify(one) === JSON.stringify(other))
      }),
    )
  })
})

test('an apply of two steps leaves the tree of the operator', async () => {
  await publishStart(host, state)
  await publishStepFlag(
    host,
    state,
    config,
    { ...base, arguments: ['a', 'b'], returncodes: [0, 1] },
    Date.UTC(2026, 10, 20, 10, 32, 9, 5),
  )
  await publishStepFlag(host, state, config, { ...base, path: 'sub/b.sh', idempotence: 'step' }, 0)
  expect(await tree(state)).toEqual([
    'flags',
    'flags/START',
    'flags/probe',
    'flags/probe/1.0.0',
    'flags/probe/1.0.0/a.sh_WydhJywgJ2InXV9bMCwgMV0=',
    'flags/probe/1.0.0/sub',
    'flags/probe/1.0.0/sub/b.sh_W11fWzBd',
  ])
  expect(await content('flags/START')).toBe('')
  expect(await content('flags/probe/1.0.0/a.sh_WydhJywgJ2InXV9bMCwgMV0=')).toBe(
    'last_run: 2026-11-20T10:32:09.005000\nstep_always_runs: False',
  )
  expect(await content('flags/probe/1.0.0/sub/b.sh_W11fWzBd')).toContain('step_always_runs: True')
})

test('a flag with the same content is not written again', async () => {
  let writes = 0
  const countingHost: HostRoot = { ...host, writeFileDurable: (...args) => (writes++, host.writeFileDurable(...args)) }
  for (let run = 0; run < 3; run++) {
    await publishStart(countingHost, state)
    await publishCheckResults(countingHost, state, 'apply-check', [{ path: 'a.sh', failed: false }])
  }
  expect(writes).toBe(3)
})

test('removing flags affects one version only', async () => {
  await publishStepFlag(host, state, config, base, 0)
  await publishStepFlag(host, state, { ...config, packageVersion: '2.0.0' }, base, 0)
  await removeStepFlags(host, state, { ...config, packageVersion: '2.0.0' })
  expect(await tree(`${state}/flags`)).toEqual(['probe', 'probe/1.0.0', 'probe/1.0.0/a.sh_W11fWzBd'])
  await removeStepFlags(host, state, { ...config, packageVersion: '3.0.0' })
})

describe('the summary of checks', () => {
  test('the summary of checks marks failed checks with True', async () => {
    await publishCheckResults(host, state, 'apply-check', [
      { path: 'a.sh', failed: false },
      { path: 'b.sh', failed: true },
    ])
    expect(await content('flags/check_results')).toBe('a.sh False\nb.sh True')
    expect(await tree(`${state}/flags`)).toEqual(['check_results'])
  })

  test('a summary without failures leaves the ALL_CHECKED flag', async () => {
    await publishCheckResults(host, state, 'config-check', [{ path: 'a.sh', failed: false }])
    expect(await content('flags/config-check_ALL_CHECKED')).toBe('')
  })
})

describe('interrupts', () => {
  test.each([
    [{ type: 'reboot' as const }, ['node_restart_0.complete']],
    [
      { type: 'service' as const, services: ['cron', 'rsyslog'] },
      ['service_restart_0.complete', 'service_restart_1.complete', 'service_restart_2.complete'],
    ],
    [{ type: 'restartAllServices' as const }, ['restart_all_services_0.complete']],
    [{ type: 'noop' as const, services: ['cron'] }, ['no_op.complete']],
  ])('the interrupt has one flag per command: %j', (interrupt, names) => {
    expect(interruptFlagNames(interrupt)).toEqual(names)
  })

  test('interrupt flags are below the resource id and contain the time', async () => {
    await publishInterruptFlags(host, state, 'demo-u-1_tuning_1.0.0', { type: 'noop' }, 1_732_099_929_250)
    expect(await content('interrupts/flags/demo-u-1_tuning_1.0.0/no_op.complete')).toBe('1732099929.250000')
  })
})

test.each([
  [[], '[]'],
  [[0, 3], '[0, 3]'],
  [['a', 'b'], "['a', 'b']"],
  [["it's"], `["it's"]`],
  [['say "hi"'], `['say "hi"']`],
  [[`it's "hi"`], `['it\\'s "hi"']`],
  [['a\\b\n\r\t'], "['a\\\\b\\n\\r\\t']"],
  [['é\u0000\u007f\u00a0\u00ad'], "['é\\x00\\x7f\\xa0\\xad']"],
  [['\u200b\u3000\ud800'], "['\\u200b\\u3000\\ud800']"],
  [['\u{e0001}\u{1f600}'], "['\\U000e0001\u{1f600}']"],
])('the Python spelling of %j is exact', (items, repr) => {
  expect(pythonRepr(items)).toBe(repr)
})
