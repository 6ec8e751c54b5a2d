import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import { createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import { journalPath, openJournalFile } from './journal-file.ts'
import type { HostRoot } from './host-root.ts'

type Document = { readonly v: 1; readonly n: number }
let mount: string
let root: HostRoot
let folder: string
let file: string
beforeEach(() => {
  ;({ folder: mount, host: root } = temporaryHost())
  file = join(mount, journalPath)
  folder = join(file, '..')
  mkdirSync(folder, { recursive: true })
})

const open = (on: HostRoot = root) => openJournalFile<Document>(on, { version: 1, clock: createVirtualClock(1234) })

describe('the journal', () => {
  test('a new host has no journal, and a written one reads back the same', async () => {
    rmSync(join(mount, 'var'), { recursive: true })
    expect(await open().read()).toEqual({ state: 'absent' })
    await open().write({ v: 1, n: 7 })
    expect(await open().read()).toEqual({ state: 'read', document: { v: 1, n: 7 } })
    expect(readdirSync(folder)).toEqual(['journal.json'])
    expect([folder, file].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o600])
  })

  test('a journal keeps fields that this agent does not know', async () => {
    writeFileSync(file, '{"v":1,"n":7,"later":true}')
    expect(await open().read()).toEqual({ state: 'read', document: { v: 1, n: 7, later: true } })
  })

  test.each(['', '{"v":1,"n"', 'null', '[]', '{"n":7}', '{"v":"1"}', '{"v":1.5}'])(
    'a damaged journal (%j) is moved aside, and a new one starts',
    async (content) => {
      writeFileSync(file, content)
      const journal = open()
      expect(await journal.read()).toMatchObject({
        state: 'unreadable',
        movedTo: `${journalPath}.unreadable-1234`,
      })
      expect(readFileSync(`${file}.unreadable-1234`, 'utf8')).toBe(content)
      await journal.write({ v: 1, n: 1 })
      expect(await open().read()).toMatchObject({ state: 'read' })
      expect(readdirSync(folder).toSorted()).toEqual(['journal.json', 'journal.json.unreadable-1234'])
    },
  )

  test('a journal of a newer agent stays where it is and is not written', async () => {
    writeFileSync(file, '{"v":2,"n":7}')
    const journal = open()
    expect(await journal.read()).toEqual({
      state: 'unreadable',
      why: expect.stringContaining('newer agent (version 2, this agent reads 1)') as string,
    })
    await expect(journal.write({ v: 1, n: 1 })).rejects.toThrow('the journal is not written')
    expect(readFileSync(file, 'utf8')).toBe('{"v":2,"n":7}')
  })

  test('a journal that the disk cannot read is neither moved nor written', async () => {
    mkdirSync(file)
    const journal = open()
    await expect(journal.read()).rejects.toThrow('EISDIR')
    await expect(journal.write({ v: 1, n: 1 })).rejects.toThrow('the journal is not written')
    rmSync(file, { recursive: true })
    expect(await journal.read()).toEqual({ state: 'absent' })
    await journal.write({ v: 1, n: 1 })
  })

  test('reading removes the temporary files of a crash', async () => {
    writeFileSync(file, '{"v":1,"n":7}')
    writeFileSync(`${file}.0123456789ab.tmp`, '{"v":1')
    expect(await open().read()).toMatchObject({ state: 'read' })
    expect(readdirSync(folder)).toEqual(['journal.json'])
  })
})

describe('a damaged journal', () => {
  const damaged = ['{"v":1', '{"v":1,"n":"text"}', '{"v":0}']
  const readDamaged = async (host: HostRoot) =>
    await openJournalFile<{ v: 1; n: number }>(host, {
      version: 1,
      clock: createVirtualClock(),
      isWhole: ({ n }) => typeof n === 'number',
    }).read()

  test.each(damaged)('the journal %s is damaged and moved aside', async (content) => {
    writeFileSync(file, content)
    expect(await readDamaged(root)).toMatchObject({ state: 'unreadable', movedTo: expect.any(String) as string })
    const [name = ''] = readdirSync(folder)
    expect(readFileSync(`${folder}/${name}`, 'utf8')).toBe(content)
  })

  test('a damaged journal that cannot be moved aside is not written over', async () => {
    writeFileSync(file, '{"v":1')
    const readOnly: HostRoot = { ...root, rename: () => Promise.reject(new Error('EROFS: read-only file system')) }
    const journal = open(readOnly)
    expect(await journal.read()).toMatchObject({
      state: 'unreadable',
      why: expect.stringContaining('cannot be moved aside: EROFS') as string,
    })
    await expect(journal.write({ v: 1, n: 1 })).rejects.toThrow('cannot be moved aside')
  })
})

describe('writes that pile up', () => {
  /** A disk that writes when told to. */
  function slowRoot() {
    const writes: { readonly content: string; finish(error?: Error): void }[] = []
    let onWrite = (): unknown => undefined
    const slowHost: HostRoot = {
      ...root,
      writeFileDurable: (_, data) =>
        new Promise((resolve, reject) => {
          writes.push({ content: String(data).trim(), finish: (error) => (error ? reject(error) : resolve()) })
          onWrite()
        }),
    }
    /** Resolves once that many writes have started. */
    const started = (count: number): Promise<void> =>
      new Promise((resolve) => {
        onWrite = () => writes.length >= count && resolve()
        onWrite()
      })
    return { slowHost, writes, started }
  }

  test('writes that pile up become one, with the last document', async () => {
    const { slowHost, writes, started } = slowRoot()
    const journal = open(slowHost)
    const first = journal.write({ v: 1, n: 1 })
    await started(1)
    const later = [2, 3, 4].map((n) => journal.write({ v: 1, n }))
    writes[0]?.finish()
    await first
    await started(2)
    writes[1]?.finish()
    await Promise.all(later)
    expect(writes.map(({ content }) => content)).toEqual(['{"v":1,"n":1}', '{"v":1,"n":4}'])
  })

  test('a failed write rejects only the callers whose document did not reach the disk', async () => {
    const { slowHost, writes, started } = slowRoot()
    const journal = open(slowHost)
    const first = journal.write({ v: 1, n: 1 })
    await started(1)
    const second = journal.write({ v: 1, n: 2 })
    writes[0]?.finish(new Error('ENOSPC'))
    await expect(first).rejects.toThrow('ENOSPC')
    await started(2)
    writes[1]?.finish()
    await second
  })
})
