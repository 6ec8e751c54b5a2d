import { describe, expect, test } from 'vitest'
import { plainStep, simplePackage } from '../../../../test/kit/node-simulator/package-content.ts'
import type { Stage } from '../../../schemas/package-config.ts'
import type { StageName } from '../../../schemas/skyhook.ts'
import { lifeOfStage, type LifeOptions, nameOf, stagesOf } from './life.ts'

const withStages = (...stages: readonly Stage[]) =>
  simplePackage(
    Object.fromEntries(stages.flatMap((stage) => [stage, `${stage}-check`]).map((mode) => [mode, [plainStep(mode)]])),
  )
const whole = withStages('apply', 'config', 'upgrade', 'post-interrupt', 'uninstall')
const reboot: LifeOptions = { interrupt: { type: 'reboot' } }
const upgraded: LifeOptions = { previous: whole }
const namesOf = (stage: StageName, options: LifeOptions = {}, config = whole) =>
  lifeOfStage(stage, config, options).map(nameOf)

const repeated = (stage: Stage) => [`${stage}, killed in the middle`, stage, `${stage}, again`]
const checked = (stage: Stage) => [`${stage}-check before ${stage}`, ...repeated(stage)]
const ofPrevious = ['apply of the previous version', 'config of the previous version']

describe('one stage', () => {
  test.each<[title: string, stage: StageName, options: LifeOptions, acts: readonly string[]]>([
    ['apply needs nothing before it', 'apply', reboot, checked('apply')],
    ['config comes after apply', 'config', reboot, ['apply', ...checked('config')]],
    [
      'an upgrade to the own version needs it installed',
      'upgrade',
      reboot,
      ['apply', 'config', ...repeated('upgrade')],
    ],
    ['an upgrade needs the version before', 'upgrade', upgraded, [...ofPrevious, ...checked('upgrade')]],
    ['config of an upgrade comes after it', 'config', upgraded, [...ofPrevious, 'upgrade', ...repeated('config')]],
    [
      'the interrupt shows which work outlasts it',
      'interrupt',
      reboot,
      [
        'apply',
        'config',
        'interrupt reboot, killed in the middle',
        'interrupt reboot',
        'apply-check after the interrupt',
        'config-check after the interrupt',
      ],
    ],
    [
      'post-interrupt comes after one interrupt',
      'post-interrupt',
      reboot,
      ['apply', 'config', 'interrupt reboot', ...repeated('post-interrupt')],
    ],
    [
      'uninstall comes last, and nothing may be left behind',
      'uninstall',
      reboot,
      ['apply', 'config', 'interrupt reboot', 'post-interrupt', ...checked('uninstall'), 'what is left behind'],
    ],
    [
      'uninstall of a package without an interrupt needs no interrupt',
      'uninstall',
      {},
      ['apply', 'config', ...checked('uninstall'), 'what is left behind'],
    ],
  ])('%s', (_, stage, options, acts) => {
    expect(namesOf(stage, options)).toEqual(acts)
  })

  test('stages that the package does not have are not before it', () => {
    expect(namesOf('config', {}, withStages('config'))).toEqual(checked('config'))
    expect(namesOf('uninstall', reboot, withStages('uninstall'))).toEqual([
      'interrupt reboot',
      ...checked('uninstall'),
      'what is left behind',
    ])
  })

  test('the patterns of what may be left behind hold for the uninstall', () => {
    expect(lifeOfStage('uninstall', whole, { ignored: ['/etc/x'] }).at(-1)).toEqual({
      act: 'look-for-remains',
      ignored: ['/etc/x'],
    })
  })
})

test('a life has the stages with steps, those of an interrupt if there is one, and no apply in an upgrade', () => {
  expect(stagesOf(whole)).toEqual(['apply', 'config', 'upgrade', 'uninstall'])
  expect(stagesOf(whole, { ...reboot, ...upgraded })).toEqual([
    'upgrade',
    'config',
    'interrupt',
    'post-interrupt',
    'uninstall',
  ])
  expect(stagesOf(withStages('config'), reboot)).toEqual(['config', 'interrupt'])
})
