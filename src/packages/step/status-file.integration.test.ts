import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { systemRandom } from '../../daemon/platform/system-clock.ts'
import { createHostRoot } from '../../host/fs/host-root.ts'
import { readPackageStatus } from './status-file.ts'

test('a status file that is a socket is reported with its path', async () => {
  const folder = temporaryFolder()
  const status = join(folder, 'var/lib/skyhook/s/status')
  await mkdir(status, { recursive: true })
  const server = createServer().listen(join(status, 'tool.json'))
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const folders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }
  expect(await readPackageStatus(createHostRoot(folder, systemRandom), folders, 's', 'tool')).toEqual({
    state: 'unusable',
    why: expect.stringContaining('/var/lib/skyhook/s/status/tool.json is not a regular file') as string,
  })
})
