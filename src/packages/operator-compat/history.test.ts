import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { readHistory, recordVersion } from './history.ts'

const state = '/var/lib/skyhook/demo'
let folder: string
let host: HostRoot

beforeEach(async () => {
  ;({ folder, host } = temporaryHost())
  await mkdir(join(folder, state, 'history'), { recursive: true })
})

const put = (text: string): Promise<void> => writeFile(join(folder, state, 'history/probe.json'), text)

test('history lists the newest version first, in the shape of the operator', async () => {
  await recordVersion(host, state, 'probe', '1.0.0', 0)
  await recordVersion(host, state, 'probe', 'uninstalled', 1500)
  expect(JSON.parse((await readFile(join(folder, state, 'history/probe.json'))).toString())).toEqual({
    'current-version': 'uninstalled',
    history: [
      { version: 'uninstalled', time: '1970-01-01T00:00:01.500+00:00' },
      { version: '1.0.0', time: '1970-01-01T00:00:00.000+00:00' },
    ],
  })
})

test('a history of the operator is read and continued', async () => {
  await put(
    '{"current-version": "1.1.0", "history": [{"version": "1.1.0", "time": "2026-11-20T10:32:09.123456+00:00"}]}',
  )
  expect(await readHistory(host, state, 'probe')).toMatchObject({ state: 'found', currentVersion: '1.1.0' })
  await recordVersion(host, state, 'probe', '1.2.0', 0)
  expect(await readHistory(host, state, 'probe')).toMatchObject({
    currentVersion: '1.2.0',
    entries: [{ version: '1.2.0' }, { version: '1.1.0' }],
  })
})

test('a missing history is absent, not corrupt', async () => {
  expect(await readHistory(host, state, 'other')).toEqual({ state: 'absent' })
})

describe('a file that is not a history', () => {
  test.each([
    '',
    '{"current-version": "1.0',
    '[]',
    'null',
    '{"current-version": 1, "history": []}',
    '{"current-version": "1", "history": [1]}',
    '{}',
  ])('the file %j is corrupt, kept as a backup and replaced', async (text) => {
    await put(text)
    await put(text)
    expect(await readHistory(host, state, 'probe')).toEqual({ state: 'corrupt' })
    await recordVersion(host, state, 'probe', '2.0.0', 0)
    expect(await readHistory(host, state, 'probe')).toMatchObject({
      currentVersion: '2.0.0',
      entries: [{ version: '2.0.0' }],
    })
    expect(await readdir(join(folder, state, 'history'))).toEqual(['probe.json', 'probe.json.backup'])
    expect((await readFile(join(folder, state, 'history/probe.json.backup'))).toString()).toBe(text)
  })
})

test('two packages of one image keep the entries of each other', async () => {
  await Promise.all(
    Array.from({ length: 10 }, (_, index) => recordVersion(host, state, 'probe', `1.0.${index}`, index)),
  )
  const history = await readHistory(host, state, 'probe')
  expect(history.state === 'found' && history.entries.map(({ version }) => version).toSorted()).toEqual(
    Array.from({ length: 10 }, (_, index) => `1.0.${index}`),
  )
})

test('the history stops growing', async () => {
  await put(
    JSON.stringify({
      'current-version': '1.0.0',
      history: Array.from({ length: 5000 }, () => ({ version: '1.0.0', time: 't' })),
    }),
  )
  await recordVersion(host, state, 'probe', '1.0.1', 0)
  const history = await readHistory(host, state, 'probe')
  expect(history.state === 'found' && history.entries.length).toBe(100)
})
