import { execFileSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import type { HostRoot } from '../fs/host-root.ts'
import { readResultRecord, recorderScript } from './result-record.ts'

let folder: string
let root: HostRoot
beforeEach(() => ({ folder, host: root } = temporaryHost()))

/** Runs the recorder with the shell as systemd would, with the environment that a step could have spoilt. */
function runRecorder(environment: Record<string, string>, results = folder): void {
  writeFileSync(join(folder, 'record-result'), recorderScript)
  execFileSync('/bin/sh', [join(folder, 'record-result'), results, 'a1'], {
    env: { PATH: '/nonexistent', ...environment },
    stdio: 'inherit',
  })
}

const success = { SERVICE_RESULT: 'success', EXIT_CODE: 'exited', EXIT_STATUS: '0', INVOCATION_ID: 'abc' }

test('the recorder writes what systemd passes it, with the boot, without the PATH of the step', async () => {
  runRecorder(success)
  expect(await readResultRecord(root, '/', 'a1')).toEqual({
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
  expect(await readResultRecord(root, '/', 'a1')).toMatchObject({
    result: 'exit-code',
    status: '3',
  })
})
