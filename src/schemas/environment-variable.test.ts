import { describe, expect, test } from 'vitest'
import { dependsOnSystemd, systemdValueProblem } from './environment-variable.ts'

const ascii = Array.from({ length: 127 }, (_, index) => String.fromCharCode(index + 1))
const controls = ascii.filter((character) => character < ' ' || character === '\x7f')

describe('a value with a control character', () => {
  test.each(controls.filter((character) => character !== '\t' && character !== '\n'))(
    'a value with %j is refused before systemd 248 only',
    (character) => {
      const value = `secret${character}more`
      expect(dependsOnSystemd(value)).toBe(true)
      for (const version of [240, 245, 247])
        expect(systemdValueProblem(value, version)).toContain('control character U+00')
      for (const version of [248, 257]) expect(systemdValueProblem(value, version)).toBeUndefined()
    },
  )

  test('a value with a carriage return is refused with its code, both versions and the remedy, and is not quoted', () => {
    const problem = systemdValueProblem('hunter2\r\n', 247)
    expect(problem).toBe(
      'contains the control character U+000D (lines of a file made on Windows end with it), which systemd takes ' +
        'since version 248 and this host has 247: remove it, or give the value as base64',
    )
    expect(systemdValueProblem('\x1b[1m', 245)).toContain('control character U+001B, which systemd')
  })
})

test.each(['', 'plain', 'two\nlines\tand a tab', '\u0080\u009f\u00a0', 'ä€😀'])(
  'the value %j is taken by every version of systemd',
  (value) => {
    expect(dependsOnSystemd(value)).toBe(false)
    expect(systemdValueProblem(value, 240)).toBeUndefined()
  },
)
