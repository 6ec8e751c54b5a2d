import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import type { HostRoot } from '../fs/host-root.ts'
import { ensureRecorder, parseResultRecord, readResultRecord, recorderScript } from './result-record.ts'

let folder: string
let root: HostRoot
beforeEach(() => ({ folder, host: root } = temporaryHost()))

test('the recorder is put on the host once, and repaired when it differs', async () => {
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
    expect(await readResultRecord(root, '/', 'a1')).toBeUndefined()
    mkdirSync(join(folder, 'a1'))
    await expect(readResultRecord(root, '/', 'a1')).rejects.toThrow('EISDIR')
  })
})
