import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatEnvironment } from './environment.ts'

/** How systemd reads a value in double quotes: a backslash takes the next of these characters as it is. */
const readBack = (content: string) =>
  Object.fromEntries(
    [...content.matchAll(/^(\w+)="((?:[^"\\]|\\[^])*)"$/gm)].map(([, name, value]) => [
      name,
      value?.replace(/\\(["\\$`])/g, '$1'),
    ]),
  )

describe('the environment file', () => {
  test('the environment file carries any text, line breaks and quotes included', () => {
    const value = fc
      .string({ unit: 'grapheme' })
      .filter((text) => !/[\0\p{Noncharacter_Code_Point}]|\p{Surrogate}/u.test(text))
    fc.assert(
      fc.property(value, value, (a, b) => {
        expect(readBack(formatEnvironment({ a, _B2: b }))).toEqual({ a, _B2: b })
      }),
    )
  })

  test.each(['', '1A', 'A-B', 'A B', 'A=B', 'ä', 'A\nB', 'BASH_FUNC_x%%'])(
    'the environment file refuses %j as a name',
    (name) => {
      expect(() => formatEnvironment({ [name]: 'x' })).toThrow('is not a variable name')
    },
  )

  test.each(['\0', '\ufffe', '\u{10ffff}', '\ufdef', '\ud83d'])(
    'the environment file refuses the value %j and names the variable, not the value',
    (value) => {
      expect(() => formatEnvironment({ TOKEN: `secret${value}` })).toThrow(
        /^environment: the value of TOKEN has a character/,
      )
      expect(() => formatEnvironment({ TOKEN: `secret${value}` })).not.toThrow('secret')
    },
  )

  test.each(['SERVICE_RESULT', 'EXIT_CODE', 'EXIT_STATUS', 'INVOCATION_ID'])(
    'the environment file refuses %s, which would falsify the record',
    (name) => {
      expect(() => formatEnvironment({ [name]: '0' })).toThrow(`${name} is set by systemd`)
    },
  )

  test('the environment file refuses what the kernel refuses', () => {
    expect(() => formatEnvironment({ A: 'x'.repeat(131_069) })).not.toThrow()
    expect(() => formatEnvironment({ A: 'x'.repeat(131_070) })).toThrow('A has 131072 bytes')
    const many = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`A${index}`, 'x'.repeat(100_000)]))
    expect(() => formatEnvironment(many)).toThrow('bytes in all')
  })
})
