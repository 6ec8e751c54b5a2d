import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemRandom } from '../../daemon/platform/system-clock.ts'
import { createHostRoot } from '../../host/fs/host-root.ts'
import { readPackageStatus } from './status-file.ts'

test('a status file that is a socket is reported with its path', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'status-'))
  const status = join(folder, 'var/lib/skyhook/s/status')
  await mkdir(status, { recursive: true })
  const server = createServer().listen(join(status, 'tool.json'))
  onTestFinished(async () => {
    server.close()
    await rm(folder, { recursive: true })
  })
  await once(server, 'listening')
  const folders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }
  expect(await readPackageStatus(createHostRoot(folder, systemRandom), folders, 's', 'tool')).toEqual({
    state: 'unusable',
    why: expect.stringContaining('/var/lib/skyhook/s/status/tool.json is not a regular file') as string,
  })
})
