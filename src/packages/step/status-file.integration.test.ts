import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import { readPackageStatus } from './status-file.ts'

test('a status file that is a socket is reported with its path', async () => {
  const { folder, host } = temporaryHost()
  const status = join(folder, 'var/lib/skyhook/s/status')
  await mkdir(status, { recursive: true })
  const server = createServer().listen(join(status, 'tool.json'))
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const folders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }
  expect(await readPackageStatus(host, folders, 's', 'tool')).toEqual({
    state: 'unusable',
    why: expect.stringContaining('/var/lib/skyhook/s/status/tool.json is not a regular file') as string,
  })
})
