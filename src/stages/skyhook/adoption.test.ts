import { describe, expect, test } from 'vitest'
import { type EntryState, entryStates, type PackageSpec, type StageName, stageNames } from '../../schemas/skyhook.ts'
import { type Due, dueOf } from '../package/next-stage.ts'
import { adoptEntries, configuredPackages } from './adoption.ts'

const textOf = (entries: Readonly<Record<string, string>>): string =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(entries).map(([version, at]) => {
        const [stage, state] = at.split('/')
        return [`a|${version}`, { name: 'a', version, image: 'r/a', stage, state }]
      }),
    ),
  )

type Case = {
  readonly spec?: Partial<PackageSpec>
  readonly status?: string
  readonly keys?: readonly string[]
  /** The configuration that the operator rolled out. */
  readonly rolledOut?: Readonly<Record<string, string>>
}

/** What an agent does first with the entries, and which interrupt it owes for the spec's version. */
function goesOn(entries: Readonly<Record<string, string>>, { spec, status, keys, rolledOut }: Case = {}): string {
  const desired: PackageSpec = { version: '1.0.0', image: 'r/a', ...spec }
  const view = { spec: { packages: { a: desired } }, ...(keys && { configUpdates: { a: keys } }) }
  const work = { state: textOf(entries), status, rolledOut: rolledOut && { a: rolledOut } }
  const records = adoptEntries(view, work)
  const due = dueOf('a', desired, Object.values(records))
  const pending = records[`a|${desired.version}`]?.pendingInterrupt?.interrupt
  return [dueText(due), ...(pending ? [`owes ${pending.type}`] : [])].join(', ')
}

function dueText(due: Due): string {
  if (due.due === 'nothing') return 'nothing'
  const stage = due.due === 'begin' ? due.stage : due.entry.progress.stage
  return `${stage} ${due.entry.version}`
}

const reboot = { interrupt: { type: 'reboot' } } as const

/** By stage; `else`: every other state of it. */
const table: Readonly<
  Record<StageName, { readonly complete: string; readonly skipped?: string; readonly else: string }>
> = {
  apply: { complete: 'config 1.0.0, owes reboot', else: 'apply 1.0.0' },
  upgrade: { complete: 'config 1.0.0, owes reboot', else: 'upgrade 1.0.0' },
  config: { complete: 'interrupt 1.0.0, owes reboot', else: 'config 1.0.0, owes reboot' },
  interrupt: { complete: 'post-interrupt 1.0.0', else: 'interrupt 1.0.0, owes reboot' },
  'post-interrupt': { complete: 'nothing', else: 'post-interrupt 1.0.0' },
  uninstall: { complete: 'apply 1.0.0', skipped: 'apply 1.0.0', else: 'apply 1.0.0' },
}

const expectedOf = (stage: StageName, state: EntryState): string => {
  const row = table[stage]
  if (state === 'complete') return row.complete
  return state === 'skipped' ? (row.skipped ?? row.else) : row.else
}

const rows = stageNames.flatMap((stage) =>
  entryStates.map((state) => [stage, state, expectedOf(stage, state)] as const),
)

describe("an entry of the operator at the spec's version", () => {
  test.each(rows)('%s/%s continues with %s', (stage, state, expected) =>
    expect(goesOn({ '1.0.0': `${stage}/${state}` }, { spec: reboot })).toBe(expected),
  )

  test.each<[string, string, string, Case]>([
    ['config is complete where no interrupt is asked for', 'config/complete', 'nothing', {}],
    [
      'config is complete where the operator took the node for complete',
      'config/complete',
      'nothing',
      { spec: reboot, status: 'complete' },
    ],
    ['an interrupt that the spec no longer asks for is not made', 'interrupt/in_progress', 'nothing', {}],
    [
      'an interrupt that the package itself asks for is not made',
      'config/complete',
      'nothing',
      { spec: { interrupt: { type: 'reboot', when: 'required' } } },
    ],
    ['a stage that nobody knows counts for nothing', 'polish/complete', 'apply 1.0.0', {}],
    ['a state that nobody knows is repeated', 'config/odd', 'config 1.0.0', {}],
  ])('%s', (_, at, expected, given) => expect(goesOn({ '1.0.0': at }, given)).toBe(expected))

  const keyed = { ...reboot, configInterrupts: { 'log.*': { type: 'service', services: ['x'] } } } as const
  test.each<[string, string, string, Case]>([
    ['that matches', 'config/complete', 'interrupt 1.0.0, owes service', { spec: keyed, keys: ['log.conf'] }],
    ['that matches', 'config/in_progress', 'config 1.0.0, owes service', { spec: keyed, keys: ['log.conf'] }],
    ['that matches', 'interrupt/erroring', 'interrupt 1.0.0, owes service', { spec: keyed, keys: ['log.conf'] }],
    ['that matches nothing', 'config/complete', 'nothing', { spec: keyed, keys: ['other'] }],
    ['that matches nothing', 'config/in_progress', 'config 1.0.0', { spec: keyed, keys: ['other'] }],
    ['that matches nothing', 'apply/complete', 'config 1.0.0, owes reboot', { spec: keyed, keys: ['other'] }],
  ])('after a roll of a key %s, %s continues with %s', (_, at, expected, given) =>
    expect(goesOn({ '1.0.0': at }, given)).toBe(expected),
  )
})

describe('a configuration that the operator has not rolled out', () => {
  const edited = { configMap: { 'a.conf': 'new' } }
  const rolledOut = { 'a.conf': 'old' }
  test.each<[string, string, Case]>([
    ['config/complete', 'config 1.0.0', { spec: edited, status: 'complete', rolledOut }],
    ['post-interrupt/complete', 'config 1.0.0', { spec: { ...edited, ...reboot }, rolledOut }],
    ['config/complete', 'nothing', { spec: edited, rolledOut: { 'a.conf': 'new' } }],
    ['config/complete', 'nothing', { spec: edited }],
    ['config/complete', 'nothing', { spec: { configMap: {} }, rolledOut }],
    ['apply/complete', 'config 1.0.0', { spec: edited, rolledOut }],
  ])('%s continues with %s', (at, expected, given) => expect(goesOn({ '1.0.0': at }, given)).toBe(expected))

  test.each<[string, string, readonly string[]]>([
    ['config/in_progress', '1.0.0', ['a']],
    ['interrupt/complete', '1.0.0', ['a']],
    ['post-interrupt/complete', '1.0.0', ['a']],
    ['apply/complete', '1.0.0', []],
    ['uninstall/in_progress', '1.0.0', []],
    ['config/complete', '1.1.0', []],
  ])('its ConfigMap matters for %s of %s: %j', (at, version, expected) => {
    const spec = {
      packages: { a: { version: '1.0.0', image: 'r/a', ...edited }, b: { version: '1.0.0', image: 'r/b' } },
    }
    const work = { state: textOf({ [version]: at }), status: undefined }
    expect(configuredPackages(spec, work)).toEqual(expected)
  })
})

describe('entries of several versions', () => {
  test.each<[string, Readonly<Record<string, string>>, string, string]>([
    [
      'an uninstall under way ends first',
      { '1.0.0': 'uninstall/skipped', '1.1.0': 'uninstall/in_progress' },
      '1.0.0',
      'uninstall 1.1.0',
    ],
    [
      'an uninstall that failed is tried again',
      { '1.0.0': 'uninstall/skipped', '1.1.0': 'uninstall/erroring' },
      '1.0.0',
      'uninstall 1.1.0',
    ],
    ['a version that was uninstalled is applied', { '1.0.0': 'uninstall/complete' }, '1.0.0', 'apply 1.0.0'],
    [
      'an upgrade under way is repeated',
      { '1.0.0': 'config/complete', '1.1.0': 'upgrade/in_progress' },
      '1.1.0',
      'upgrade 1.1.0',
    ],
    ['an older version that is half done is upgraded', { '1.0.0': 'apply/erroring' }, '1.1.0', 'upgrade 1.1.0'],
    [
      'a higher version that is half done is uninstalled',
      { '1.1.0': 'config/in_progress' },
      '1.0.0',
      'uninstall 1.1.0',
    ],
    ['a higher version that is complete is uninstalled', { '1.1.0': 'config/complete' }, '1.0.0', 'uninstall 1.1.0'],
    [
      'an uninstall of what is asked for again ends with apply',
      { '1.0.0': 'uninstall/in_progress' },
      '1.0.0',
      'apply 1.0.0',
    ],
  ])('%s', (_, entries, version, expected) => expect(goesOn(entries, { spec: { version } })).toBe(expected))
})
