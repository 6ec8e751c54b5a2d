import { describe, expect, test } from 'vitest'
import { plainStep, simplePackage } from '../../../../test/kit/node-simulator/package-content.ts'
import type { StageName } from '../../../schemas/skyhook.ts'
import { configFilesOf, interruptOf, requireInputs, requireStage, variablesOf } from './inputs.ts'
import type { LifeOptions } from './life.ts'

test('an interrupt of services names them, and no other interrupt does', () => {
  expect(interruptOf('reboot', [])).toEqual({ type: 'reboot' })
  expect(interruptOf('none', [])).toBeUndefined()
  expect(interruptOf('service', ['cron'])).toEqual({ type: 'service', services: ['cron'] })
  expect(() => interruptOf('service', [])).toThrow(/needs to know which/)
  expect(() => interruptOf('reboot', ['cron'])).toThrow(/--service does not fit/)
})

describe('--only', () => {
  const config = simplePackage({ apply: [plainStep('a')], 'config-check': [plainStep('c')] })
  const withInterrupt = { interrupt: { type: 'reboot' } } as const
  const has = (stages: string) => `name one that it has: ${stages}`

  test.each<[StageName, LifeOptions, message: string, remedy: string]>([
    ['uninstall', {}, 'pkg 1.0.0 has no stage uninstall', has('apply, config')],
    ['upgrade', withInterrupt, 'pkg 1.0.0 has no stage upgrade', has('apply, config, interrupt')],
    ['post-interrupt', withInterrupt, 'pkg 1.0.0 has no stage post-interrupt', has('apply, config, interrupt')],
    ['interrupt', {}, '--only interrupt does not fit --interrupt none', 'say which interrupt the package has'],
    [
      'post-interrupt',
      {},
      '--only post-interrupt does not fit --interrupt none',
      'say which interrupt the package has',
    ],
    [
      'apply',
      { previous: config },
      '--only apply does not fit --from: an upgrade does not run apply',
      'leave out --from',
    ],
  ])('%s with %j is refused', (stage, options, message, remedy) => {
    const refused = expect.objectContaining({ exitCode: 2, message, remedy }) as Error
    expect(() => requireStage(stage, config, options)).toThrow(refused)
  })

  test('a package without steps is refused without a stage to name', () => {
    const refused = expect.objectContaining({ remedy: 'its config.json names no steps' }) as Error
    expect(() => requireStage('apply', simplePackage({}), {})).toThrow(refused)
  })

  test('a stage that is only a check, and the interrupt of --interrupt, are stages', () => {
    expect(() => requireStage('config', config, {})).not.toThrow()
    expect(() => requireStage('interrupt', config, withInterrupt)).not.toThrow()
  })
})

test('a key of configMap is a name and a file', () => {
  expect(configFilesOf(['a.txt=dir/b=c.txt'])).toEqual([['a.txt', 'dir/b=c.txt']])
  for (const bad of ['a.txt', '=b', 'a=']) expect(() => configFilesOf([bad])).toThrow(/--config/)
})

test('inputs that agents would miss must be given, and the remedy has the flags', () => {
  const named = (name: string) => [plainStep('run.sh', { arguments: [`env:${name}`] })]
  const modes = { upgrade: named('SITE'), 'post-interrupt': named('LATER'), uninstall: named('NEVER') }
  const config = { ...simplePackage(modes), expectedConfigFiles: ['a', 'b'] }
  expect(() => requireInputs(config, { configMap: { b: '' } })).toThrow(
    expect.objectContaining({
      message: 'the package expects a in configMap, and SITE in env',
      remedy: 'add --config a=FILE --env SITE=VALUE',
    }),
  )
  const given = { configMap: { a: '', b: '', c: '' }, env: [{ name: 'SITE', value: '' }] }
  expect(() => requireInputs(config, given)).not.toThrow()
  expect(() => requireInputs(config, { ...given, interrupt: { type: 'reboot' } })).toThrow(/expects LATER in env/)
})

test('a comma belongs to the value of a variable unless another variable starts after it', () => {
  expect(variablesOf(['A=1', '2', 'B=x=y', 'C='])).toEqual([
    { name: 'A', value: '1,2' },
    { name: 'B', value: 'x=y' },
    { name: 'C', value: '' },
  ])
  expect(() => variablesOf(['1A=1'])).toThrow(/sets no variable/)
  expect(() => variablesOf(['A=\0'])).toThrow(/NUL/)
})
