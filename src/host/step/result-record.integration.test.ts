import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemRandom } from '../../daemon/platform/system-clock.ts'
import { createHostRoot } from '../fs/host-root.ts'
import { ensureRecorder, parseResultRecord, readResultRecord, recorderScript } from './result-record.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'record-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Runs the recorder with the shell as systemd would, with the environment that a step could have spoilt. */
function runRecorder(environment: Record<string, string>, results = folder): void {
  writeFileSync(join(folder, 'record-result'), recorderScript)
  execFileSync('/bin/sh', [join(folder, 'record-result'), results, 'a1'], {
    env: { PATH: '/nonexistent', ...environment },
    stdio: 'inherit',
  })
}

const success = { SERVICE_RESULT: 'success', EXIT_CODE: 'exited', EXIT_STATUS: '0', INVOCATION_ID: 'abc' }

describe('the recorder', () => {
  test('the recorder writes what systemd passes it, with the boot, without the PATH of the step', async () => {
    runRecorder(success)
    expect(await readResultRecord(createHostRoot(folder, systemRandom), '/', 'a1')).toEqual({
      attempt: 'a1',
      result: 'success',
      code: 'exited',
      status: '0',
      invocationId: 'abc',
      bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
      isHostStopping: false,
    })
  })

  test('the recorder writes a file that only root can read', () => {
    runRecorder(success)
    expect(statSync(join(folder, 'a1')).mode & 0o777).toBe(0o600)
  })

  test('the recorder replaces the record of an earlier attempt of the same name', async () => {
    writeFileSync(join(folder, 'a1'), 'x'.repeat(5000))
    runRecorder({ ...success, SERVICE_RESULT: 'exit-code', EXIT_STATUS: '3' })
    expect(await readResultRecord(createHostRoot(folder, systemRandom), '/', 'a1')).toMatchObject({
      result: 'exit-code',
      status: '3',
    })
  })

  test('the recorder is put on the host once, and repaired when it differs', async () => {
    const root = createHostRoot(folder, systemRandom)
    await ensureRecorder(root, '/agent/record-result', '/agent/results')
    const file = join(folder, 'agent/record-result')
    expect(statSync(file).mode & 0o777).toBe(0o755)
    const before = statSync(file).ino
    await ensureRecorder(root, '/agent/record-result', '/agent/results')
    expect(statSync(file).ino).toBe(before)
    writeFileSync(file, 'exit 0')
    rmSync(join(folder, 'agent/results'), { recursive: true })
    await ensureRecorder(root, '/agent/record-result', '/agent/results')
    expect(readFileSync(file, 'utf8')).toBe(recorderScript)
    for (const name of ['agent', 'agent/results']) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o700)
  })
})

describe('a record', () => {
  const wholeLine =
    '{"v":1,"attempt":"a1","result":"success","code":"exited","status":"0","invocation":"i","boot":"b","system":""}\n'

  test('a record shows whether the host was going down', () => {
    expect(parseResultRecord(wholeLine.replace('"system":""', '"system":"stopping"'), 'a1')).toMatchObject({
      isHostStopping: true,
    })
    expect(parseResultRecord(wholeLine.replace('"system":""', '"system":"degraded"'), 'a1')).toMatchObject({
      isHostStopping: false,
    })
  })

  test('a record cut at any byte does not count', () => {
    for (let length = 0; length < wholeLine.length; length++)
      expect(parseResultRecord(wholeLine.slice(0, length), 'a1')).toBeUndefined()
  })

  test.each([
    ['another attempt', wholeLine.replace('a1', 'a2')],
    ['a later format', wholeLine.replace('"v":1', '"v":2')],
    ['no invocation', wholeLine.replace('"i"', '""')],
    ['an unknown code', wholeLine.replace('exited', 'vanished')],
    ['no object', '[1]}\n'],
  ])('a record of %s does not count', (_, content) => expect(parseResultRecord(content, 'a1')).toBeUndefined())

  test('a missing record is undefined, and a folder in its place is an error', async () => {
    const root = createHostRoot(folder, systemRandom)
    expect(await readResultRecord(root, '/', 'a1')).toBeUndefined()
    mkdirSync(join(folder, 'a1'))
    await expect(readResultRecord(root, '/', 'a1')).rejects.toThrow('EISDIR')
  })
})
