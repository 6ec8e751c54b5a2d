import { describe, expect, test } from 'vitest'
import { plainStep } from '../../../test/kit/node-simulator/package-content.ts'
import type { Mode, PackageConfig, Step } from '../../schemas/package-config.ts'
import { composeStep, isSwitchedOn, substituteArguments } from './environment.ts'
import type { Variable } from './references.ts'

const base = plainStep('run.sh')
const config: PackageConfig = { packageName: 'probe', packageVersion: '1.1.0', expectedConfigFiles: [], modes: {} }
const instance = { skyhook: 'demo', skyhookUid: 'u-1', generation: 4, name: 'tuning', version: '2024.05.10' }
const folders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }
const copyDir = '/var/lib/skyhook/demo/tuning-2024.05.10-u-1-4'

function compose({
  step = {},
  mode = 'apply',
  variables = {},
  previousVersion = '1.0.0',
}: {
  step?: Partial<Step>
  mode?: Mode
  variables?: Record<string, string>
  previousVersion?: string
}) {
  const list: Variable[] = Object.entries(variables).map(([name, value]) => ({ name, value }))
  return composeStep({ config, mode, step: { ...base, ...step }, instance, folders, variables: list, previousVersion })
}
const environmentOf = (input: Parameters<typeof compose>[0]): Readonly<Record<string, string>> => {
  const composed = compose(input)
  return composed.outcome === 'composed' ? composed.environment : {}
}

test('a step without variables gets the defaults and those of the agent', () => {
  expect(compose({})).toEqual({
    outcome: 'composed',
    arguments: [],
    environment: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/root',
      SKYHOOK_RESOURCE_ID: 'demo-u-1-4_tuning_2024.05.10',
      SKYHOOK_ROOT_DIR: '/var/lib/skyhook/demo',
      SKYHOOK_LOG_DIR: '/var/log/skyhook/demo',
      COPY_RESOLV: 'false',
      STEP_ROOT: `${copyDir}/skyhook_dir`,
      SKYHOOK_DIR: copyDir,
    },
  })
})

describe('who wins', () => {
  test.each<[string, Parameters<typeof compose>[0], Record<string, string>]>([
    ['the Skyhook over the defaults', { variables: { PATH: '/opt/bin' } }, { PATH: '/opt/bin' }],
    [
      'the agent over the Skyhook',
      { variables: { COPY_RESOLV: 'true', SKYHOOK_RESOURCE_ID: 'x' } },
      { COPY_RESOLV: 'false', SKYHOOK_RESOURCE_ID: 'demo-u-1-4_tuning_2024.05.10' },
    ],
    ['the step over the Skyhook', { variables: { A: 'skyhook' }, step: { env: { A: 'step' } } }, { A: 'step' }],
    ['the step over the agent', { step: { env: { SKYHOOK_LOG_DIR: '/x' } } }, { SKYHOOK_LOG_DIR: '/x' }],
    [
      'nobody over the two folders',
      { variables: { STEP_ROOT: 'a', SKYHOOK_DIR: 'b' }, step: { env: { STEP_ROOT: 'c', SKYHOOK_DIR: 'd' } } },
      { STEP_ROOT: `${copyDir}/skyhook_dir`, SKYHOOK_DIR: copyDir },
    ],
    [
      'the versions over the step',
      { mode: 'upgrade', step: { env: { CURRENT_VERSION: 'x' } } },
      { CURRENT_VERSION: '1.1.0', PREVIOUS_VERSION: '1.0.0' },
    ],
    [
      'the step outside of upgrades',
      { mode: 'config', step: { env: { CURRENT_VERSION: 'x' } } },
      { CURRENT_VERSION: 'x' },
    ],
  ])('precedence among variables: %s wins', (_, input, expected) => {
    expect(environmentOf(input)).toMatchObject(expected)
  })

  test('a value keeps its line breaks', () => {
    expect(environmentOf({ variables: { KEY: 'a\nB=c\n' } })).toMatchObject({ KEY: 'a\nB=c\n' })
    expect(environmentOf({ variables: { KEY: 'a\nB=c\n' } })).not.toHaveProperty('B')
  })
})

describe('upgrades', () => {
  test.each<[Mode, Partial<Step>, string, readonly string[]]>([
    ['upgrade', { upgradeStep: true }, '1.0.0', ['1.0.0', '1.1.0']],
    ['upgrade-check', { upgradeStep: true }, '1.0.0', ['1.0.0', '1.1.0']],
    ['upgrade', { upgradeStep: true }, 'unknown', ['unknown', '1.1.0']],
    ['upgrade', {}, '1.0.0', []],
    ['upgrade', { arguments: ['x'] }, '1.0.0', ['x']],
  ])('the mode %s of a step %j from version %s gets the arguments %j', (mode, step, previousVersion, expected) => {
    expect(compose({ mode, step, previousVersion })).toMatchObject({
      arguments: expected,
      environment: { CURRENT_VERSION: '1.1.0', PREVIOUS_VERSION: previousVersion },
    })
  })

  test('a mode other than upgrade gets no versions', () => {
    expect(environmentOf({ mode: 'apply' })).not.toHaveProperty('PREVIOUS_VERSION')
  })
})

describe('env: arguments', () => {
  const shared = { A: 'value', B: 'secret' }
  test.each<[readonly string[], readonly unknown[]]>([
    [['env:A'], [{ variable: 'A' }]],
    [
      ['x', 'env:A', 'y env:A', 'env'],
      ['x', { variable: 'A' }, 'y env:A', 'env'],
    ],
  ])('the arguments %j become %j, which name a value and do not have it', (written, expected) => {
    expect(substituteArguments(written, shared, shared)).toEqual({
      outcome: 'substituted',
      arguments: expected,
      variables: {},
    })
  })

  test('an argument whose variable has another value in the step gets a variable of its own', () => {
    expect(substituteArguments(['env:A', 'env:B'], shared, { ...shared, B: 'of the step' })).toEqual({
      outcome: 'substituted',
      arguments: [{ variable: 'A' }, { variable: 'SKYHOOK_ARGUMENT_B' }],
      variables: { SKYHOOK_ARGUMENT_B: 'secret' },
    })
  })

  test('each missing variable is named once', () => {
    const written = ['env:C', 'env:A', 'env:D', 'env:C', 'env:', 'env:toString']
    expect(substituteArguments(written, shared, { ...shared, D: 'x' })).toEqual({
      outcome: 'missing',
      variables: ['C', 'D', '', 'toString'],
    })
  })

  test('env: arguments see the env of the Skyhook and the agent, not that of the step', () => {
    const written = ['env:CSP', 'env:SKYHOOK_RESOURCE_ID', 'env:STEP_ROOT']
    const variables = { CSP: 'azure', STEP_ROOT: 'mine' }
    expect(compose({ variables, step: { arguments: written, env: { CSP: 'aws' } } })).toMatchObject({
      arguments: [
        { variable: 'SKYHOOK_ARGUMENT_CSP' },
        { variable: 'SKYHOOK_RESOURCE_ID' },
        { variable: 'SKYHOOK_ARGUMENT_STEP_ROOT' },
      ],
      environment: { CSP: 'aws', SKYHOOK_ARGUMENT_CSP: 'azure', SKYHOOK_ARGUMENT_STEP_ROOT: 'mine' },
    })
    expect(compose({ step: { arguments: ['env:OWN'], env: { OWN: 'x' } } })).toEqual({
      outcome: 'missing',
      variables: ['OWN'],
    })
  })
})

test.each([
  [undefined, true, true],
  [undefined, false, false],
  ['false', true, false],
  ['TRUE', false, true],
  ['1', true, false],
  ['', true, false],
])('a switch set to %s, by default %s, is %s', (value, byDefault, expected) => {
  expect(
    isSwitchedOn(
      value === undefined
        ? []
        : [
            { name: 'S', value: 'other' },
            { name: 'S', value },
          ],
      'S',
      byDefault,
    ),
  ).toBe(expected)
})
