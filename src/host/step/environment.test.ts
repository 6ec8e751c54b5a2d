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

const hostWith = (version: number) => ({ version: async () => version })
const format = async (variables: Readonly<Record<string, string>>, version = 257): Promise<string> =>
  await formatEnvironment(variables, hostWith(version))

describe('the environment file', () => {
  test('the environment file carries any text, line breaks and quotes included', async () => {
    const value = fc
      .string({ unit: 'grapheme' })
      .filter((text) => !/[\0\p{Noncharacter_Code_Point}]|\p{Surrogate}/u.test(text))
    await fc.assert(
      fc.asyncProperty(value, value, async (a, b) => {
        expect(readBack(await format({ a, _B2: b }))).toEqual({ a, _B2: b })
      }),
    )
  })

  test.each(['', '1A', 'A-B', 'A B', 'A=B', 'ä', 'A\nB', 'BASH_FUNC_x%%'])(
    'the environment file refuses %j as a name',
    async (name) => {
      await expect(format({ [name]: 'x' })).rejects.toThrow('is not a variable name')
    },
  )

  test.each(['\0', '\ufffe', '\u{10ffff}', '\ufdef', '\ud83d'])(
    'the environment file refuses the value %j and names the variable, not the value',
    async (value) => {
      const message = await format({ TOKEN: `secret${value}` }).catch(String)
      expect(message).toMatch(/^UnitValueError: environment: the value of TOKEN has a character/)
      expect(message).not.toContain('secret')
    },
  )

  test.each(['SERVICE_RESULT', 'EXIT_CODE', 'EXIT_STATUS', 'INVOCATION_ID'])(
    'the environment file refuses %s, which would falsify the record',
    async (name) => {
      await expect(format({ [name]: '0' })).rejects.toThrow(`${name} is set by systemd`)
    },
  )

  test('the environment file refuses what the kernel refuses', async () => {
    await expect(format({ A: 'x'.repeat(131_069) })).resolves.toContain('xx')
    await expect(format({ A: 'x'.repeat(131_070) })).rejects.toThrow('A has 131072 bytes')
    const many = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`A${index}`, 'x'.repeat(100_000)]))
    await expect(format(many)).rejects.toThrow('bytes in all')
  })

  test('the environment file has no control character where systemd drops a variable with one', async () => {
    const message = await format({ PEM: 'secret\r\n' }, 247).catch(String)
    expect(message).toContain('environment: the value of PEM contains the control character U+000D')
    expect(message).not.toContain('secret')
    await expect(format({ PEM: 'secret\r\n' }, 248)).resolves.toBe('PEM="secret\r\n"\n')
    await expect(format({ PEM: 'two\nlines\tand a tab' }, 240)).resolves.toContain('lines')
  })

  test('the environment file needs the version of systemd only for a value with a control character', async () => {
    const version = async (): Promise<number> => {
      throw new Error('no answer')
    }
    await expect(formatEnvironment({ A: 'plain\n' }, { version })).resolves.toBe('A="plain\n"\n')
    await expect(formatEnvironment({ A: 'plain\r\n' }, { version })).rejects.toThrow('no answer')
  })
})
