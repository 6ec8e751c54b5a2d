import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../kit/files/temporary-folder.ts'
import { followCommands } from './failpoint-commands.ts'

let folder: string
let file: string
let sentSignals: string[]
const follow = (): ((name: string) => void) => followCommands(file, (signal) => void sentSignals.push(signal))
const passAll = (pass: (name: string) => void, ...names: string[]): void => names.forEach((name) => pass(name))

beforeEach(() => {
  folder = temporaryFolder()
  file = join(folder, 'commands')
  sentSignals = []
})

describe('failpoint commands', () => {
  test('an agent without a command records no passage', () => {
    passAll(follow(), 'a')
    expect(existsSync(`${file}.passed`)).toBe(false)
  })

  test('a command `none` only records every passage with its number', () => {
    writeFileSync(file, '1 none -\n')
    passAll(follow(), 'bus:RestartUnit', 'bus:RestartUnit', 'api:POST-leases')
    expect(readFileSync(`${file}.passed`, 'utf8')).toBe(
      '1 bus:RestartUnit#1\n1 bus:RestartUnit#2\n1 api:POST-leases#1\n',
    )
    expect(sentSignals).toEqual([])
  })

  test('a command stops or kills the running agent once, at its passage', () => {
    const pass = follow()
    writeFileSync(file, '2 stop a#2\n')
    passAll(pass, 'a', 'b')
    expect(sentSignals).toEqual([])
    passAll(pass, 'a', 'a')
    expect(sentSignals).toEqual(['SIGSTOP'])
    expect(existsSync(file)).toBe(false)
    expect(readFileSync(`${file}.done`, 'utf8')).toBe('2 stop a#2\n')
    writeFileSync(file, '3 kill b#1\n')
    passAll(pass, 'b')
    expect(sentSignals).toEqual(['SIGSTOP', 'SIGKILL'])
  })

  test('each run counts its passages from one', () => {
    const pass = follow()
    writeFileSync(file, '1 none -\n')
    passAll(pass, 'a', 'a')
    writeFileSync(file, '2 stop a#1\n')
    passAll(pass, 'a')
    expect(sentSignals).toEqual(['SIGSTOP'])
  })

  test('a restarted agent continues the count of its run', () => {
    writeFileSync(file, '3 kill b#1\n')
    passAll(follow(), 'b')
    writeFileSync(file, '3 kill b#2\n')
    passAll(follow(), 'b')
    expect(sentSignals).toEqual(['SIGKILL', 'SIGKILL'])
    expect(readFileSync(`${file}.passed`, 'utf8')).toBe('3 b#1\n3 b#2\n')
  })
})
