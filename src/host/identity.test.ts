import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readBootId, readMachineId, readOperatingSystem } from './identity.ts'
import { createHostRoot, type HostRoot } from './fs/host-root.ts'

let mount: string
let root: HostRoot
beforeEach(() => {
  mount = mkdtempSync(join(tmpdir(), 'identity-'))
  root = createHostRoot(mount)
})
afterEach(() => rmSync(mount, { recursive: true }))

function put(path: string, content: string): void {
  mkdirSync(dirname(join(mount, path)), { recursive: true })
  writeFileSync(join(mount, path), content)
}

test('the boot id is the host’s, and an error where there is none', async () => {
  await expect(readBootId(root)).rejects.toThrow('ENOENT')
  put('/proc/sys/kernel/random/boot_id', '5480b099-1e8c-4755-b850-3daeeb4791a8\n')
  expect(await readBootId(root)).toBe('5480b099-1e8c-4755-b850-3daeeb4791a8')
  put('/proc/sys/kernel/random/boot_id', '\n')
  await expect(readBootId(root)).rejects.toThrow('boot id reads ""')
})

test('a machine may have no id yet', async () => {
  expect(await readMachineId(root)).toBeUndefined()
  put('/etc/machine-id', 'uninitialized\n')
  expect(await readMachineId(root)).toBeUndefined()
  put('/etc/machine-id', '0123456789abcdef0123456789abcdef\n')
  expect(await readMachineId(root)).toBe('0123456789abcdef0123456789abcdef')
})

test('the operating system names itself, quoted or not, through the usual link', async () => {
  expect(await readOperatingSystem(root)).toEqual({ id: 'linux' })
  put('/usr/lib/os-release', 'PRETTY_NAME="Debian"\nVERSION_ID="12"\nID=debian\n')
  expect(await readOperatingSystem(root)).toEqual({ id: 'debian', versionId: '12' })
  mkdirSync(join(mount, 'etc'))
  symlinkSync('../usr/lib/os-release', join(mount, 'etc/os-release'))
  expect(await readOperatingSystem(root)).toEqual({ id: 'debian', versionId: '12' })
})
