import { expect, test } from 'vitest'
import { errorOf } from '../../../../test/kit/tool/command-error.ts'
import { exitCodes } from '../../framework/command-error.ts'
import { defaultBase, requireBase, requireMachine, type RunMachine } from './requirements.ts'

const machine: RunMachine = { platform: 'linux', uid: 0, hasProgram: () => true }
test('a machine that is not Linux, a caller who is not root, and missing programs are refused, each with a remedy', () => {
  expect(() => requireMachine(machine)).not.toThrow()
  const cases: readonly [Partial<RunMachine>, RegExp, RegExp][] = [
    [{ platform: 'darwin' }, /needs Linux, this is darwin/, /Linux machine/],
    [{ uid: 1000 }, /needs root/, /sudo/],
    [{ hasProgram: (name) => name !== 'systemd-nspawn' }, /needs systemd-nspawn$/, /install systemd-container/],
  ]
  for (const [change, message, remedy] of cases) {
    const error = errorOf(() => requireMachine({ ...machine, ...change }))
    expect(error).toMatchObject({ exitCode: exitCodes.failed, message: expect.stringMatching(message) as string })
    expect(error.remedy).toMatch(remedy)
  }
})

const good = { exists: true, hasSystemd: true, hasBus: true }

test('a missing base is refused with the command that makes it', () => {
  const error = errorOf(() => requireBase(defaultBase, true, { ...good, exists: false }))
  expect(error).toMatchObject({ exitCode: exitCodes.notFound })
  expect(error.remedy).toContain(`debootstrap`)
  expect(error.remedy).toContain(defaultBase)
  expect(errorOf(() => requireBase('/base', false, { ...good, exists: false })).remedy).toMatch(/^make it: .* \/base$/)
})

test('a base without systemd or bus, and this machine itself, are usage errors', () => {
  expect(() => requireBase('/base', false, good)).not.toThrow()
  const error = errorOf(() => requireBase('/base', false, { ...good, hasSystemd: false, hasBus: false }))
  expect(error.message).toBe('/base cannot be booted: it has no systemd and no D-Bus daemon')
  expect(error.remedy).toContain('install them there: unlike agents, package run speaks to systemd over the bus alone')
  expect(errorOf(() => requireBase('/base', false, { ...good, hasSystemd: false })).remedy).not.toContain('agents')
  expect(errorOf(() => requireBase('/', false, good))).toMatchObject({ exitCode: exitCodes.usage })
})
