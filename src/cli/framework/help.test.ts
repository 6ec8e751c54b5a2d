import { expect, test } from 'vitest'
import { exitCodes } from './exit-codes.ts'
import { exitCodesOf } from './help.ts'

test('any command has the codes of success, failure, wrong use and ctrl-C, in order', () => {
  expect([...exitCodesOf({ isLocal: true }).keys()]).toEqual([0, 1, 2, 130])
  expect([...exitCodesOf({ isLocal: true, exitCodes: { [exitCodes.refused]: 'not empty' } })]).toEqual([
    [0, 'done'],
    [1, 'failed, wholly or in part; the errors are on stderr'],
    [2, 'the call is wrong: unknown flag, missing argument, unreadable file'],
    [4, 'not empty'],
    [130, 'interrupted by ctrl-C'],
  ])
})

test('a command that asks the API server can be refused, to read or to act', () => {
  expect(exitCodesOf({}).get(exitCodes.refused)).toBe('you may not read what it needs')
  expect(exitCodesOf({ isAction: true }).get(exitCodes.refused)).toBe('not confirmed, or refused by the API server')
})

test('a command defines the meaning of a code, or that it never ends with it', () => {
  const own = { [exitCodes.refused]: 'the file exists', [exitCodes.ok]: 'ended by ctrl-C' }
  const codes = exitCodesOf({ exitCodes: own })
  expect([codes.get(exitCodes.ok), codes.get(exitCodes.refused)]).toEqual(['ended by ctrl-C', 'the file exists'])
  expect(exitCodesOf({ exitCodes: { [exitCodes.refused]: null } }).has(exitCodes.refused)).toBe(false)
})
