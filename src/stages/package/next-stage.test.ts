import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PackageProgress, PackageRecord } from '../../schemas/package-record.ts'
import type { Stage } from '../../schemas/package-config.ts'
import type { PackageSpec, StageName } from '../../schemas/skyhook.ts'
import {
  compareVersions,
  dueOf,
  isMidChange,
  isVersionOrRange,
  parseVersion,
  satisfiesConstraint,
} from './next-stage.ts'

const work = { digest: 'sha256:1', generation: 1, inputs: '', packageName: 'p', packageVersion: '1.0.0' }
const inputs = { config: {}, env: [] }
const config = { started: inputs, finished: inputs, changedKeys: [] }
const complete = (stage: StageName): PackageProgress => ({ state: 'complete', stage })
const due = (stage: StageName): PackageProgress => ({ state: 'due', stage })
const attempt = { number: 1, startedAtMs: 0, steps: [], inputs: '' }
const running = (stage: Stage): PackageProgress => ({ state: 'running', stage, attempt })
const failed = (version: string, stage: Stage, restarts: number): PackageRecord => {
  const failure = { reason: 'StepFailed', message: 'no' } as const
  return installed(version, { state: 'retrying', stage, attempt, retryAtMs: 0, failure }, { restarts })
}
const untouched = { untouched: true } as const
const leftBehind: PackageProgress = { state: 'retained', stage: 'uninstall', shownAs: 'unknown' }
const retained: PackageProgress = { state: 'retained', stage: 'config', shownAs: 'complete' }
const installed = (version: string, progress: PackageProgress, change: Partial<PackageRecord> = {}): PackageRecord =>
  ({ name: 'a', version, image: 'r/p', restarts: 0, work, config, progress, ...change }) as PackageRecord
const unstarted = (version: string): PackageRecord => ({
  name: 'a',
  version,
  image: 'r/p',
  restarts: 0,
  progress: { state: 'due', stage: 'apply' },
})
const spec = (version: string, change: Partial<PackageSpec> = {}): PackageSpec => ({ version, image: 'r/p', ...change })
const reboot = { pendingInterrupt: { interrupt: { type: 'reboot' } } } as const
const keep = { uninstall: { enabled: false } }
const uninstallNow = { uninstall: { enabled: true, apply: true } }

/** What is due, in short: `start upgrade 1.1.0`. */
function dueText(desired: PackageSpec | undefined, entries: readonly PackageRecord[], isDeleted = false): string {
  const found = dueOf('a', desired, entries, isDeleted)
  if (found.due === 'nothing') return 'nothing'
  return `${found.due === 'begin' ? `start ${found.stage}` : found.due} ${found.entry.version}`
}

describe('what is due', () => {
  test.each<[string, string, PackageSpec | undefined, readonly PackageRecord[]]>([
    ['a new host', 'start apply 1.0.0', spec('1.0.0'), []],
    ['an older version', 'start upgrade 1.1.0', spec('1.1.0'), [installed('1.0.0', complete('config'))]],
    ['a higher version', 'start uninstall 2.0.0', spec('1.0.0'), [installed('2.0.0', complete('config'))]],
    [
      'a higher version that is kept',
      'start apply 1.0.0',
      spec('1.0.0', keep),
      [installed('2.0.0', complete('config'))],
    ],
    ['a retained version', 'start apply 1.0.0', spec('1.0.0'), [installed('2.0.0', retained)]],
    ['a version that never started', 'forget 1.0.0', spec('1.1.0'), [unstarted('1.0.0')]],
    ['an unfinished uninstall', 'continue 1.0.0', undefined, [installed('1.0.0', due('uninstall'))]],
    ['a downgrade under way', 'continue 2.0.0', spec('1.0.0'), [installed('2.0.0', due('uninstall'))]],
    ['a requested uninstall', 'continue 1.0.0', spec('1.0.0', uninstallNow), [installed('1.0.0', due('uninstall'))]],
    ['an uninstall of what is put back', 'start apply 1.0.0', spec('1.0.0'), [installed('1.0.0', due('uninstall'))]],
    ['an uninstall of an older version', 'start apply 2.0.0', spec('2.0.0'), [installed('1.0.0', due('uninstall'))]],
    [
      'an uninstall that its policy stops',
      'start apply 1.0.0',
      spec('1.0.0', keep),
      [installed('2.0.0', due('uninstall'))],
    ],
    ['an uninstall that is about to end', 'continue 1.0.0', spec('1.0.0'), [installed('1.0.0', running('uninstall'))]],
    ['two failed uninstalls', 'continue 1.0.0', undefined, [failed('1.0.0', 'uninstall', 2)]],
    ['three failed uninstalls', 'leave-behind 1.0.0', undefined, [failed('1.0.0', 'uninstall', 3)]],
    ['three failed downgrades', 'continue 2.0.0', spec('1.0.0'), [failed('2.0.0', 'uninstall', 3)]],
    ['an uninstall that was given up', 'nothing', undefined, [installed('1.0.0', leftBehind)]],
    ['one that was given up and is put back', 'start apply 1.0.0', spec('1.0.0'), [installed('1.0.0', leftBehind)]],
    ['an install that did not start', 'forget 1.0.0', undefined, [installed('1.0.0', due('apply'), untouched)]],
    [
      'an upgrade that did not start',
      'forget 2.0.0',
      spec('1.0.0'),
      [installed('1.0.0', complete('config')), installed('2.0.0', due('upgrade'), untouched)],
    ],
    ['a failing post-interrupt', 'continue 1.0.0', spec('1.0.0'), [failed('1.0.0', 'post-interrupt', 1)]],
    [
      'a failing post-interrupt with a corrected configuration',
      'start config 1.0.0',
      spec('1.0.0', { configMap: { x: '1' } }),
      [failed('1.0.0', 'post-interrupt', 1)],
    ],
    ['a stage under way', 'continue 1.0.0', spec('1.0.0'), [installed('1.0.0', due('config'))]],
    ['a passed uninstall', 'start apply 1.0.0', spec('1.0.0'), [installed('1.0.0', complete('uninstall'))]],
    ['a passed apply', 'start config 1.0.0', spec('1.0.0'), [installed('1.0.0', complete('apply'))]],
    ['a passed upgrade', 'start config 1.0.0', spec('1.0.0'), [installed('1.0.0', complete('upgrade'))]],
    ['a passed config', 'nothing', spec('1.0.0'), [installed('1.0.0', complete('config'))]],
    ['a pending interrupt', 'start interrupt 1.0.0', spec('1.0.0'), [installed('1.0.0', complete('config'), reboot)]],
    ['a passed interrupt', 'start post-interrupt 1.0.0', spec('1.0.0'), [installed('1.0.0', complete('interrupt'))]],
    ['a passed post-interrupt', 'nothing', spec('1.0.0'), [installed('1.0.0', complete('post-interrupt'))]],
    [
      'a changed configuration',
      'start config 1.0.0',
      spec('1.0.0', { configMap: { x: '1' } }),
      [installed('1.0.0', complete('config'))],
    ],
    [
      'an uninstall in the spec',
      'start uninstall 1.0.0',
      spec('1.0.0', uninstallNow),
      [installed('1.0.0', complete('config'))],
    ],
    ['a package that left the spec', 'start uninstall 1.0.0', undefined, [installed('1.0.0', complete('config'))]],
    ['a kept package that left the spec', 'nothing', undefined, [installed('1.0.0', complete('config'), keep)]],
  ])('after %s, the next stage is: %s', (_, expected, desired, entries) =>
    expect(dueText(desired, entries)).toBe(expected),
  )

  test('a package of a deleted Skyhook is uninstalled only if its policy says so', () => {
    const entry = installed('1.0.0', complete('config'))
    expect(dueText(undefined, [entry], true)).toBe('nothing')
    const enabled = { uninstall: { enabled: true } }
    expect(dueText(undefined, [{ ...entry, ...enabled }], true)).toBe('start uninstall 1.0.0')
    expect(dueText(undefined, [installed('1.0.0', retained, enabled)], true)).toBe('start uninstall 1.0.0')
    expect(dueText(undefined, [installed('1.0.0', leftBehind, enabled)], true)).toBe('nothing')
  })
})

test.each<[string, boolean, PackageRecord]>([
  ['one that never started', false, unstarted('1.0.0')],
  ['one with a stage under way', true, installed('1.0.0', due('config'))],
  ['one that passed apply', true, installed('1.0.0', complete('apply'))],
  ['one that passed config', false, installed('1.0.0', complete('config'))],
  ['one with a pending interrupt', true, installed('1.0.0', complete('config'), reboot)],
  ['one that passed post-interrupt', false, installed('1.0.0', complete('post-interrupt'))],
  ['a retained one', false, installed('1.0.0', retained)],
])('a package is or is not mid-change, here %s: %s', (_, expected, entry) => expect(isMidChange(entry)).toBe(expected))

describe('versions', () => {
  test.each(['1', '1.2', '1.2.3', 'v1.2.3', '2024.05.10', '1.02.0', '1.2.3-rc.1', '1.2.3+b', '1-rc1', '2024.7.7-test'])(
    '%s is a version',
    (text) => {
      expect(parseVersion(text)).toBeDefined()
    },
  )
  test.each(['', 'a', '1.2.3.4', '2024/07/06', '1.2.', '1..2', '1.2.3-', '>=1', ' 1.0'])(
    '%j is not a version',
    (text) => {
      expect(parseVersion(text)).toBeUndefined()
    },
  )
})

describe('order', () => {
  test.each([
    ['1.2.3', '1.2.4'],
    ['1.9', '1.10'],
    ['2024.05.10', '2024.5.11'],
    ['1.0.0-rc.1', '1.0.0'],
    ['1.0.0-alpha', '1.0.0-alpha.1'],
    ['1.0.0-2', '1.0.0-10'],
    ['1.0.0-10', '1.0.0-a'],
    ['no version', '0.0.1'],
  ])('%s comes before %s', (lower, higher) => {
    expect(compareVersions(lower, higher)).toBeLessThan(0)
    expect(compareVersions(higher, lower)).toBeGreaterThan(0)
  })
  test.each([
    ['1.2', '1.2.0'],
    ['v1.2.0', '1.2'],
    ['2024.05.10', '2024.5.10'],
    ['1.0.0+a', '1.0.0+b'],
  ])('%s and %s are of equal precedence', (a, b) => {
    expect(compareVersions(a, b)).toBe(0)
  })
  test('the order of versions is total', () => {
    const version = fc
      .tuple(fc.nat(3), fc.nat(3), fc.nat(3), fc.constantFrom('', '-a', '-1', '-a.1'))
      .map(([a, b, c, pre]) => `${a}.${b}.${c}${pre}`)
    fc.assert(
      fc.property(version, version, version, (a, b, c) => {
        expect(Math.sign(compareVersions(a, b))).toBe(-Math.sign(compareVersions(b, a)) + 0)
        if (compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0)
          expect(compareVersions(a, c)).toBeLessThanOrEqual(0)
      }),
    )
  })
})

describe('dependsOn', () => {
  test.each([
    ['1.2.3', '1.2.3', true],
    ['1.2.0', '1.2', false], // exact means as written
    ['2024.05.13', '2024.05.13', true],
    ['3.4.0', '>=3.0 <4', true],
    ['4.0.0', '>=3.0 <4', false],
    ['1.9.1', '^1.2', true],
    ['2024.05.10', '>=2024.1', true],
    ['1.2.3', 'nonsense', false],
  ])('version %s satisfies %s: %s', (version, desired, expected) => {
    expect(satisfiesConstraint(version, desired)).toBe(expected)
  })
  test('text that is neither version nor range is recognized', () => {
    expect(isVersionOrRange('^1.2')).toBe(true)
    expect(isVersionOrRange('latest please')).toBe(false)
    expect(isVersionOrRange('')).toBe(false)
  })
})
