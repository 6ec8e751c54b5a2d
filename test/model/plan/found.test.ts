import { expect, test } from 'vitest'
import type { PackageSpec, SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import type { ScenarioEvent } from '../scenario.ts'
import type { Case } from './case.ts'
import { judge, type Verdict } from './judge.ts'

/** Cases of the search in which a plan was wrong once, made small. */
const cron = { type: 'service', services: ['cron'] } as const
const typo = { type: 'service', services: ['typo'] } as const
const specOf = (packages: Readonly<Record<string, PackageSpec>>, rest: Partial<SkyhookSpec> = {}): SkyhookSpec => ({
  nodeSelectors: { matchLabels: { pool: 'x' } },
  packages,
  ...rest,
})
const packageOf = (rest: Partial<PackageSpec> = {}): PackageSpec => ({ version: '1.0.0', image: 'r/pkg', ...rest })
const ignored: ScenarioEvent = { kind: 'labelled', key: 'skyhook.nvidia.com/ignore', value: 'true' }
const changed = (spec: SkyhookSpec): ScenarioEvent => ({ kind: 'spec changed', spec })
const rounds = (times: number): ScenarioEvent => ({ kind: 'rounds', times, reversed: false, conflict: false })
const empty = { beginning: 'empty', life: [], asked: 'nothing', requires: false } as const
/** An interrupt runs: the operator left it unfinished. */
const interrupting = {
  ...empty,
  beginning: { adopted: { 'pb|1.0.0': { stage: 'interrupt', state: 'erroring' } } },
  spec: specOf({ pb: packageOf({ interrupt: { type: 'restartAllServices' } }) }),
} as const satisfies Case
/** Nothing has started, as no slot is granted. */
const joining = {
  beginning: 'joining',
  spec: specOf({ pa: packageOf() }, { runtimeRequired: true }),
  life: [{ kind: 'slots granted', granted: false }],
  asked: 'nothing',
  requires: false,
} as const satisfies Case

test.each<[title: string, one: Case, verdict: Partial<Verdict>]>([
  [
    'a package that the operator has installed is configured after the drain for its interrupt',
    {
      ...empty,
      beginning: {
        adopted: {
          'pa|1.0.0': { stage: 'upgrade', state: 'complete' },
          'pb|1.0.0': { stage: 'uninstall', state: 'in_progress' },
        },
      },
      spec: specOf({ pa: packageOf({ interrupt: { type: 'reboot' } }) }, { serial: true, drain: { cordon: 'late' } }),
    },
    { verdict: 'right' },
  ],
  [
    'of two steps on a node whose work is suspended, the Node names one, which its plan says',
    {
      ...empty,
      spec: specOf({ pa: packageOf(), pb: packageOf() }),
      life: [rounds(7), ignored, changed(specOf({ pc: packageOf() }))],
    },
    { verdict: 'not judged', why: 'doubtful' },
  ],
  [
    'of two packages at work on a node that leaves the selector, the Node names one',
    {
      ...empty,
      spec: specOf({ pa: packageOf({ uninstall: { enabled: false } }), pb: packageOf() }),
      life: [rounds(6), changed(specOf({})), { kind: 'labelled', key: 'pool', value: 'y' }],
      asked: [{ edit: 'package', of: 'pa', change: { configMap: { x: '3' } } }],
    },
    { verdict: 'not judged', why: 'doubtful' },
  ],
  [
    'a reboot of another Skyhook may replace the interrupt that a package asks for',
    {
      ...empty,
      spec: specOf({}),
      life: [
        { kind: 'finish' },
        {
          kind: 'other Skyhook changed',
          spec: specOf({ pc: packageOf({ interrupt: { type: 'reboot', when: 'required' } }) }),
          priority: 300,
        },
        rounds(7),
      ],
      asked: [{ edit: 'package', of: 'pa', change: { interrupt: { ...cron, when: 'required' } } }],
      requires: true,
    },
    { verdict: 'not judged', why: 'a reboot of another Skyhook' },
  ],
  [
    'an interrupt of services that also reads kernel settings is said with both',
    {
      ...empty,
      spec: specOf({
        pa: packageOf({ interrupt: cron }),
        pb: packageOf({ interrupt: { type: 'restartAllServices' } }),
      }),
    },
    { verdict: 'right' },
  ],
  [
    'a node that joins the cluster starts by the budget for joining nodes where that of the others is 0',
    {
      ...joining,
      asked: [{ edit: 'spec', change: { interruptionBudget: { count: 0 }, bootstrap: { count: 1 } } }],
    },
    { verdict: 'right', deeds: 2 },
  ],
  [
    'a node that joins the cluster does not start where the budget for joining nodes is 0',
    { ...joining, asked: [{ edit: 'spec', change: { bootstrap: { count: 0 } } }] },
    { verdict: 'right', deeds: 0 },
  ],
  [
    'a closed node with pods that must leave does not start by the budget for joining nodes',
    {
      ...joining,
      life: [...joining.life, { kind: 'pod created', name: 'p', refuses: false, isProtected: false }],
      asked: [{ edit: 'spec', change: { interruptionBudget: { count: 0 }, bootstrap: { count: 1 } } }],
    },
    { verdict: 'right', deeds: 0 },
  ],
  [
    'an interrupt that runs does not wait for a package that the edit adds',
    {
      ...interrupting,
      asked: [{ edit: 'package', of: 'pa', change: { interrupt: { type: 'restartAllServices' } } }],
    },
    { verdict: 'right', deeds: 7 },
  ],
  [
    'an interrupt that runs ends although the edit pauses its Skyhook',
    { ...interrupting, asked: [{ edit: 'annotation', key: 'pause', on: true }] },
    { verdict: 'right', deeds: 2 },
  ],
  [
    'a package that waits in the middle of its stage, since the Skyhook became serial, continues before the drain',
    {
      ...empty,
      spec: specOf({ pc: packageOf() }),
      life: [
        rounds(4),
        changed(
          specOf(
            { pb: packageOf(), pc: packageOf({ interrupt: cron, env: [{ name: 'E', value: '1' }] }) },
            { serial: true },
          ),
        ),
      ],
    },
    { verdict: 'right', deeds: 7 },
  ],
  [
    'a package whose environment alone has changed since it was configured owes no interrupt of its keys',
    {
      ...empty,
      spec: specOf({ pc: packageOf({ configMap: { y: '2' } }) }),
      life: [
        { kind: 'time goes by' },
        changed(
          specOf(
            {
              pa: packageOf(),
              pc: packageOf({
                configMap: { y: '2' },
                env: [{ name: 'E', value: '1' }],
                configInterrupts: { '*': { type: 'reboot' } },
              }),
            },
            { serial: true },
          ),
        ),
      ],
    },
    { verdict: 'right', deeds: 3 },
  ],
  [
    'a package may ask for the interrupt of a key that the spec no longer has',
    {
      ...empty,
      spec: specOf({
        pa: packageOf({ configMap: { y: '2' }, configInterrupts: { '*': { type: 'reboot', when: 'required' } } }),
      }),
      life: [{ kind: 'time goes by' }, changed(specOf({ pa: packageOf() }))],
      requires: true,
    },
    { verdict: 'right', deeds: 4 },
  ],
  [
    'a package that fails after its interrupt returns to the interrupt that the edit asks for instead',
    {
      ...empty,
      spec: specOf({
        pc: packageOf({ interrupt: { type: 'noop' }, configMap: { fails: 'post-interrupt-check' } }),
      }),
      life: [{ kind: 'time goes by' }],
      asked: [{ edit: 'package', of: 'pc', change: { interrupt: { type: 'reboot' } } }],
    },
    { verdict: 'right', deeds: 3 },
  ],
  [
    'a package in whose stage the operator was waits for a dependency, and starts on a drained node',
    {
      ...empty,
      beginning: { adopted: { 'pc|1.0.0': { stage: 'apply', state: 'in_progress' } } },
      spec: specOf({ pb: packageOf(), pc: packageOf({ interrupt: cron, dependsOn: { pb: '1.0.0' } }) }),
    },
    { verdict: 'right', deeds: 7 },
  ],
  [
    'a package whose interrupt failed under the operator is configured on a drained node',
    {
      ...empty,
      beginning: { adopted: { 'pb|2.0.0': { stage: 'interrupt', state: 'erroring' } } },
      spec: specOf({}),
      life: [
        changed(
          specOf({
            pb: packageOf({ version: '2.0.0', configMap: { fails: 'interrupt' }, interrupt: typo }),
            pa: packageOf({ uninstall: { enabled: true, apply: true } }),
          }),
        ),
      ],
      asked: [{ edit: 'package', of: 'pb', change: { configMap: { x: '1' } } }],
    },
    { verdict: 'right', deeds: 4 },
  ],
  [
    'a version that the operator started, and that an edit brings back, starts on a drained node',
    {
      ...empty,
      beginning: {
        adopted: {
          'pc|1.1.0': { stage: 'apply', state: 'in_progress' },
          'pa|2.0.0': { stage: 'post-interrupt', state: 'complete' },
        },
      },
      spec: specOf({}),
      life: [changed(specOf({ pc: packageOf({ interrupt: cron, uninstall: { enabled: true } }) }, { serial: true }))],
      asked: [{ edit: 'package', of: 'pc', change: { version: '1.1.0' } }],
    },
    { verdict: 'right', deeds: 6 },
  ],
  [
    'a node that only the operator has worked on is planned as its agent adopts it',
    {
      ...empty,
      beginning: { left: { 'pa|1.0.0': { stage: 'config', state: 'complete' } } },
      spec: specOf({ pa: packageOf({ interrupt: cron }) }),
    },
    { verdict: 'right', deeds: 3 },
  ],
  [
    'a node that only the operator has worked on has the configuration before the edit',
    {
      ...empty,
      beginning: { left: { 'pa|1.0.0': { stage: 'post-interrupt', state: 'complete' } } },
      spec: specOf({ pa: packageOf({ configMap: { x: '1' }, configInterrupts: { x: cron } }) }),
      asked: [{ edit: 'package', of: 'pa', change: { configMap: { x: '2' } } }],
    },
    { verdict: 'right', deeds: 4 },
  ],
  [
    'an edit that stops an installation of which the Node names no step is a doubt',
    {
      ...empty,
      beginning: { adopted: { 'pa|1.1.0': { stage: 'interrupt', state: 'complete' } } },
      spec: specOf({ pc: packageOf({ version: '1.1.0', uninstall: { enabled: false } }) }),
      life: [rounds(6), changed(specOf({}))],
      asked: [{ edit: 'package', of: 'pc', change: {} }],
    },
    { verdict: 'not judged', why: 'doubtful' },
  ],
])('%s', async (_, one, verdict) => {
  expect(await judge(one)).toMatchObject(verdict)
})
