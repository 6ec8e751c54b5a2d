import { expect, test } from 'vitest'
import { configFilesOf, interruptOf, requireConfig, variablesOf } from './inputs.ts'

test('an interrupt of services names them, and no other interrupt does', () => {
  expect(interruptOf('reboot', [])).toEqual({ type: 'reboot' })
  expect(interruptOf('none', [])).toBeUndefined()
  expect(interruptOf('service', ['cron'])).toEqual({ type: 'service', services: ['cron'] })
  expect(() => interruptOf('service', [])).toThrow(/needs to know which/)
  expect(() => interruptOf('reboot', ['cron'])).toThrow(/--service does not fit/)
})

test('a key of configMap is a name and a file, and keys that the package expects must be given', () => {
  expect(configFilesOf(['a.txt=dir/b=c.txt'])).toEqual([['a.txt', 'dir/b=c.txt']])
  for (const bad of ['a.txt', '=b', 'a=']) expect(() => configFilesOf([bad])).toThrow(/--config/)
  expect(() => requireConfig(['a', 'b'], ['b'])).toThrow(/expects a in configMap/)
  expect(() => requireConfig(['b'], ['a', 'b'])).not.toThrow()
})

test('a comma belongs to the value of a variable unless another variable begins after it', () => {
  expect(variablesOf(['A=1', '2', 'B=x=y', 'C='])).toEqual([
    { name: 'A', value: '1,2' },
    { name: 'B', value: 'x=y' },
    { name: 'C', value: '' },
  ])
  expect(() => variablesOf(['1A=1'])).toThrow(/sets no variable/)
  expect(() => variablesOf(['A=\0'])).toThrow(/NUL/)
})
