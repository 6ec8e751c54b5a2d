import { expect, test } from 'vitest'
import { plainStep, simplePackage } from '../../../../test/kit/node-simulator/package-content.ts'
import { configFilesOf, interruptOf, requireInputs, variablesOf } from './inputs.ts'

test('an interrupt of services names them, and no other interrupt does', () => {
  expect(interruptOf('reboot', [])).toEqual({ type: 'reboot' })
  expect(interruptOf('none', [])).toBeUndefined()
  expect(interruptOf('service', ['cron'])).toEqual({ type: 'service', services: ['cron'] })
  expect(() => interruptOf('service', [])).toThrow(/needs to know which/)
  expect(() => interruptOf('reboot', ['cron'])).toThrow(/--service does not fit/)
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
