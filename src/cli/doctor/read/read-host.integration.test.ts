import { existsSync } from 'node:fs'
import { platform, totalmem } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../../test/kit/files/temporary-folder.ts'
import { systemClock, systemRandom } from '../../../daemon/platform/system-clock.ts'
import { readLocalHost } from './read-host.ts'

test('a look at this machine finds its memory and disks, and creates no folder', async () => {
  const folder = temporaryFolder()
  const folders = { copyDirRoot: join(folder, 'packages'), agentLogRoot: join(folder, 'logs') }
  const host = await readLocalHost({ clock: systemClock, random: systemRandom, folders })
  expect(host).toMatchObject({ platform: platform(), memory: { known: true }, disks: { known: true } })
  expect(host.memory.known && Math.abs(host.memory.value.totalBytes / totalmem() - 1)).toBeLessThan(0.1)
  expect(host.disks.known && host.disks.value.map((disk) => disk.folder)).toEqual(Object.values(folders))
  for (const one of host.disks.known ? host.disks.value : []) expect(one.sizeBytes).toBeGreaterThan(one.availableBytes)
  expect(Object.values(folders).filter((one) => existsSync(one))).toEqual([])
})
