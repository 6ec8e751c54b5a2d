import { describe, expect, test } from 'vitest'
import {
  assertUnitName,
  command,
  count,
  environmentFile,
  reloadSafeCommand,
  infinityUsec,
  path,
  text,
  timeout,
  unitPath,
} from './unit-properties.ts'

describe('text and paths', () => {
  test.each(['a\nExecStartPre=/bin/evil', 'a\rb', 'tab\t', 'nul\0', 'del\x7f', 'nel\x85'])(
    'a text refuses control characters: %j',
    (value) => {
      expect(() => text('Description', value)).toThrow(/^Description: .* control character/)
      expect(() => path('WorkingDirectory', `/${value}`)).toThrow(/^WorkingDirectory: .* control character/)
      expect(() => environmentFile(`/${value}`)).toThrow(/control character/)
      expect(() => command('ExecStart', [`/${value}`])).toThrow(/control character/)
    },
  )

  test.each(['\ufffe', '\u{1ffff}', '\ufdd0', '\ud800'])('a text refuses what the bus does not carry: %j', (value) => {
    expect(() => text('Description', value)).toThrow(/a character that systemd refuses/)
    expect(() => command('ExecStart', ['/bin/echo', value])).toThrow(/a character that systemd refuses/)
  })

  test('a text keeps every other character', () =>
    expect(text('Description', '100 % of $HOME “x” \\')).toMatchObject({ value: '100 % of $HOME “x” \\' }))
  test('the path of a file must be absolute', () =>
    expect(() => path('StandardOutputFile', 'log')).toThrow('"log" is not an absolute path'))
})

describe('commands', () => {
  test('a secret argument is named in the command, and its value is not in it', () => {
    const secret = { prefix: '$A=', variable: 'TOKEN' }
    expect(command('ExecStart', ['/bin/echo', { variable: 'TOKEN' }, secret])).toEqual({
      name: 'ExecStart',
      signature: 'a(sasb)',
      value: [['/bin/echo', ['/bin/echo', '${TOKEN}', '$$A=${TOKEN}'], false]],
    })
    expect(() => command('ExecStart', ['/bin/echo', { variable: 'A}B' }])).toThrow('is not a variable name')
  })

  test('a command doubles every dollar and nothing else', () => {
    expect(command('ExecStart', ['/bin/echo', '$X ${Y} $$', '%n', 'a;b', '', 'line\nbreak'])).toEqual({
      name: 'ExecStart',
      signature: 'a(sasb)',
      value: [['/bin/echo', ['/bin/echo', '$$X $${Y} $$$$', '%n', 'a;b', '', 'line\nbreak'], false]],
    })
  })

  test('a command refuses what the kernel refuses', () => {
    expect(command('ExecStart', ['/bin/echo', 'x'.repeat(131_071)])).toBeDefined()
    expect(() => command('ExecStart', ['/bin/echo', 'ä'.repeat(65_536)])).toThrow('longer than 131071 bytes')
    expect(() => command('ExecStart', ['echo'])).toThrow('not an absolute path')
  })

  test.each(['$X', 'a;b', 'two words', '"', "'", '\\', '', 'ä', '*'])(
    'a command that starts late refuses what a daemon-reload would spoil: %j',
    (argument) => {
      expect(() => reloadSafeCommand('ExecStopPost', ['/bin/sh', argument])).toThrow(
        'would not survive a daemon-reload',
      )
    },
  )
})

describe('numbers', () => {
  test('no time limit is the largest number, because 0 would mean at once', () => {
    expect(timeout('TimeoutStartUSec', undefined).value).toBe(infinityUsec)
    expect(timeout('TimeoutStartUSec', 1.5).value).toBe(1500n)
    for (const bad of [0, -1, Number.NaN, Infinity])
      expect(() => timeout('TimeoutStartUSec', bad)).toThrow('is not a time above 0')
  })

  test('a limit must be a whole number above 0', () => {
    expect(count('MemoryMax', 2 ** 40).value).toBe(2n ** 40n)
    for (const bad of [0, -1, 1.5, Number.NaN, 2 ** 53]) expect(() => count('MemoryMax', bad)).toThrow('MemoryMax: ')
  })
})

describe('names', () => {
  test('the path of an environment file is escaped for globs', () =>
    expect(environmentFile('/run/g[1]*?\\.env').value).toEqual([['/run/g\\[1\\]\\*\\?\\\\.env', false]]))

  test('a unit name has a type, known characters and at most 255 bytes', () => {
    expect(() => assertUnitName('skyhookd-a@b_c.service')).not.toThrow()
    for (const bad of ['a', 'a b.service', 'ä.service', '../x.service', `${'a'.repeat(248)}.service`])
      expect(() => assertUnitName(bad)).toThrow('is not a unit name')
  })

  test('a unit name becomes an object path byte by byte', () => {
    expect(unitPath('dbus.service')).toBe('/org/freedesktop/systemd1/unit/dbus_2eservice')
    expect(unitPath('9-ä.service')).toBe('/org/freedesktop/systemd1/unit/_39_2d_c3_a4_2eservice')
  })
})
