import { beforeEach, expect, test } from 'vitest'
import { temporaryHost, writeBelow } from '../../test/kit/files/temporary-folder.ts'
import { readBootId } from './identity.ts'
import type { HostRoot } from './fs/host-root.ts'

let mount: string
let root: HostRoot
beforeEach(() => ({ folder: mount, host: root } = temporaryHost()))

const put = (path: string, content: string): void => writeBelow(mount, path, content)

test('an unreadable boot id is an error', async () => {
  await expect(readBootId(root)).rejects.toThrow('ENOENT')
  put('/proc/sys/kernel/random/boot_id', '5480b099-1e8c-4755-b850-3daeeb4791a8\n')
  expect(await readBootId(root)).toBe('5480b099-1e8c-4755-b850-3daeeb4791a8')
  put('/proc/sys/kernel/random/boot_id', '\n')
  await expect(readBootId(root)).rejects.toThrow('boot id reads ""')
})
