import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createSeededRandom } from '../../test/kit/virtual-clock.ts'
import { readBootId } from './identity.ts'
import { createHostRoot, type HostRoot } from './fs/host-root.ts'

let mount: string
let root: HostRoot
beforeEach(() => {
  mount = mkdtempSync(join(tmpdir(), 'identity-'))
  root = createHostRoot(mount, createSeededRandom(1))
})
afterEach(() => rmSync(mount, { recursive: true }))

function put(path: string, content: string): void {
  mkdirSync(dirname(join(mount, path)), { recursive: true })
  writeFileSync(join(mount, path), content)
}

test('an unreadable boot id is an error', async () => {
  await expect(readBootId(root)).rejects.toThrow('ENOENT')
  put('/proc/sys/kernel/random/boot_id', '5480b099-1e8c-4755-b850-3daeeb4791a8\n')
  expect(await readBootId(root)).toBe('5480b099-1e8c-4755-b850-3daeeb4791a8')
  put('/proc/sys/kernel/random/boot_id', '\n')
  await expect(readBootId(root)).rejects.toThrow('boot id reads ""')
})
