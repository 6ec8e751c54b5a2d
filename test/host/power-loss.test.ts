/** What a power cut loses, on a host whose disk contains only what was synced. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { openJournalFile } from '../../src/host/fs/journal-file.ts'
import { bootHost, type SystemdHost } from '../kit/cluster/systemd-host.ts'

let host: SystemdHost
beforeAll(async () => (host = await bootHost({ diskMib: 64 })))
afterAll(async () => await host.down())

test('the journal and durable files survive an immediate power cut, a file that was only written does not', async () => {
  const { root } = host
  const journal = openJournalFile<{ v: number; note: string }>(root, { version: 1, clock: systemClock })
  const note = randomBytes(8).toString('hex')
  await root.mkdirp('/var/lib/skyhook/new/folder')
  await root.writeFileDurable('/var/lib/skyhook/new/folder/kept', note, 0o644)
  await journal.write({ v: 1, note: 'older' })
  await journal.write({ v: 1, note })
  await root.writeFile('/var/lib/skyhook/new/folder/lost', note, 0o644)
  await host.crash()

  expect((await root.readFile('/var/lib/skyhook/new/folder/kept')).toString()).toBe(note)
  expect(await openJournalFile(root, { version: 1, clock: systemClock }).read()).toEqual({
    state: 'read',
    document: { v: 1, note },
  })
  expect(await root.stat('/var/lib/skyhook/new/folder/lost')).toBeUndefined()
})

test('a full disk refuses a durable file with ENOSPC and keeps the previous one', async () => {
  const { root } = host
  await root.writeFileDurable('/var/lib/skyhook/kept', 'before', 0o644)
  await host.exec('sh', '-c', 'dd if=/dev/zero of=/filler bs=64k 2>/dev/null; true')
  await expect(root.writeFileDurable('/var/lib/skyhook/kept', randomBytes(1 << 20), 0o644)).rejects.toMatchObject({
    code: 'ENOSPC',
  })
  expect((await root.readFile('/var/lib/skyhook/kept')).toString()).toBe('before')
  await host.exec('rm', '/filler')
  await root.writeFileDurable('/var/lib/skyhook/kept', 'after', 0o644)
  expect(await root.readdir('/var/lib/skyhook')).toEqual(expect.not.arrayContaining([expect.stringMatching(/\.tmp$/)]))
})
