import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { writeBelow, temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import { connectSystemd } from '../../../test/kit/host/systemd-connection.ts'
import type { HostRoot } from '../fs/host-root.ts'
import type { HostFacts } from './facts.ts'
import { holderOfPort, listenerUid, readBootId, readBusFacts, readHostFacts } from './gather.ts'

const copyDirRoot = '/var/lib/skyhook'
let folder: string
let host: HostRoot
beforeEach(() => ({ folder, host } = temporaryHost()))

const write = (path: string, text: string): void => writeBelow(folder, path, text)
const gather = async (): Promise<HostFacts> =>
  await readHostFacts(host, { copyDirRoot, agentLogRoot: '/var/log/skyhook' })
const line = (point: string, options: string, fileSystem = 'ext4'): string =>
  `25 1 8:1 / ${point} ${options} shared:1 - ${fileSystem} /dev/sda1 rw`
const mounts = (...lines: readonly string[]): void => write('/proc/1/mountinfo', `${lines.join('\n')}\n`)
const mountOfRoot = async (): Promise<HostFacts['copyDirRoot']['mount']> => (await gather()).copyDirRoot.mount
const root = line('/', 'rw,relatime')

describe('the mount of the copy dir', () => {
  test.each<[string, string, string[]]>([
    ['the folder itself', copyDirRoot, [root, line(copyDirRoot, 'rw,noexec')]],
    ['a folder above it', '/var', [root, line('/var', 'rw,noexec')]],
    ['the root file system', '/', [line('/', 'rw,noexec')]],
    ['the later one of two on the same point', '/var', [root, line('/var', 'rw'), line('/var', 'rw,noexec')]],
    [
      'not one whose name only starts the same',
      '/',
      [line('/', 'noexec'), line('/var/lib/sky', 'rw'), line('/var/l', 'rw')],
    ],
  ])('the mount that counts is %s', async (_, point, lines) => {
    mounts(...lines)
    expect(await mountOfRoot()).toMatchObject({ point, options: expect.arrayContaining(['noexec']) as unknown })
  })

  test('the mount is found behind a link of the host, and with a blank in its name', async () => {
    mkdirSync(join(folder, 'var/lib'), { recursive: true })
    symlinkSync('/my data', join(folder, copyDirRoot))
    mounts(root, line('/my\\040data', 'rw,noexec', 'xfs'))
    expect(await mountOfRoot()).toEqual({ point: '/my data', fileSystem: 'xfs', options: ['rw', 'noexec'] })
  })
})

describe('a container', () => {
  const ownBootId = line('/proc/sys/kernel/random/boot_id', 'ro', 'tmpfs')
  test.each<[string, string | undefined, string[], HostFacts['container']]>([
    ['a machine', undefined, [root], undefined],
    ['a node of kind', 'docker\n', [root], { manager: 'docker', hasOwnBootId: false }],
    ['a host of nspawn', 'systemd-nspawn\n', [root, ownBootId], { manager: 'systemd-nspawn', hasOwnBootId: true }],
    ['a container with an own boot id', 'lxc', [root, ownBootId], { manager: 'lxc', hasOwnBootId: true }],
    ['a host of nspawn, its mounts unknown', 'systemd-nspawn', [], { manager: 'systemd-nspawn', hasOwnBootId: true }],
    ['another container, its mounts unknown', 'podman', [], { manager: 'podman', hasOwnBootId: false }],
  ])('the host is %s', async (_, text, lines, expected) => {
    if (text !== undefined) write('/run/systemd/container', text)
    mounts(...lines)
    expect((await gather()).container).toEqual(expected)
  })

  test('a host whose file about it cannot be read does not count as a machine', async () => {
    mkdirSync(join(folder, '/run/systemd/container'), { recursive: true })
    mounts(root)
    expect((await gather()).container).toBe('unreadable')
  })
})

describe('the control groups', () => {
  const v2 = line('/sys/fs/cgroup', 'rw', 'cgroup2')
  const v1 = line('/sys/fs/cgroup/memory', 'rw', 'cgroup')
  test.each<[HostFacts['cgroup'], string[]]>([
    ['v2', [root, v2]],
    ['v1', [root, v1]],
    ['hybrid', [root, v1, line('/sys/fs/cgroup/unified', 'rw', 'cgroup2')]],
    [undefined, [root]],
  ])('the control groups of the host are %s', async (expected, lines) => {
    mounts(...lines)
    expect((await gather()).cgroup).toBe(expected)
  })
})

describe('what every host has', () => {
  test('kernel, system, SELinux and user namespace are read from the files of the host', async () => {
    mounts(root)
    write('/proc/sys/kernel/osrelease', '6.1.0-28-amd64\n')
    write('/etc/os-release', 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
    write('/sys/fs/selinux/enforce', '1')
    write('/proc/self/attr/current', 'system_u:system_r:spc_t:s0\0')
    write('/proc/1/uid_map', '0 0 4294967295\n')
    write('/proc/self/uid_map', '0 100000 65536\n')
    write('/bin/sh', '')
    expect(await gather()).toMatchObject({
      kernel: '6.1.0-28-amd64',
      os: 'Debian GNU/Linux 12 (bookworm)',
      selinux: 'enforcing',
      agentContext: 'system_u:system_r:spc_t:s0',
      isUserNamespaced: true,
      missingPrograms: ['/usr/bin/env'],
      copyDirRoot: { refusedWith: undefined },
    })
  })

  test('a host whose files cannot be read is known for nothing', async () => {
    expect(await gather()).toMatchObject({
      cgroup: undefined,
      kernel: undefined,
      os: undefined,
      selinux: undefined,
      agentContext: undefined,
      isUserNamespaced: undefined,
      copyDirRoot: { path: copyDirRoot, mount: undefined },
    })
  })

  test('a folder in which no file can be created is named with the errno, and the others keep no trace', async () => {
    write('/var/log/skyhook', 'a file')
    const { otherFolders } = await gather()
    expect(otherFolders.filter(({ refusedWith }) => refusedWith !== undefined)).toEqual([
      { path: '/var/log/skyhook', refusedWith: expect.stringMatching(/^E(EXIST|NOTDIR)$/) as unknown },
    ])
    expect(await host.readTree('/var/lib')).toEqual(['skyhook', 'skyhook/.agent'])
  })
})

describe('the bus', () => {
  test('systemd reports its version, and which unit the bus is', async () => {
    const systemd = connectSystemd()
    systemd.setVersion('255.4')
    expect(await readBusFacts(systemd.connection)).toEqual({ systemd: '255.4', bus: 'dbus.service' })
  })

  test('a bus that refuses to answer is not a finding', async () => {
    const systemd = connectSystemd()
    systemd.refuses('Get', 'org.freedesktop.DBus.Error.AccessDenied', 'no')
    expect(await readBusFacts(systemd.connection)).toEqual({ systemd: undefined, bus: undefined })
  })
})

test('an unreadable boot id is an error', async () => {
  await expect(readBootId(host)).rejects.toThrow('ENOENT')
  write('/proc/sys/kernel/random/boot_id', '5480b099-1e8c-4755-b850-3daeeb4791a8\n')
  expect(await readBootId(host)).toBe('5480b099-1e8c-4755-b850-3daeeb4791a8')
  write('/proc/sys/kernel/random/boot_id', '\n')
  await expect(readBootId(host)).rejects.toThrow('boot id reads ""')
})

const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0150 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 19001 1 0000000000000000 100
   1: 0A00000A:2503 0B00000A:D2F0 01 00000000:00000000 00:00000000 00000000  1002        0 19002 1 0000000000000000 20
   2: 00000000:2503 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 19003 1 0000000000000000 100
`
const tcp6 = `  sl  local_address                         remote_address                        st
   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 65534 0 19004 1 0 100
`
const files: Readonly<Record<string, string>> = {
  '/proc/self/net/tcp': tcp,
  '/proc/self/net/tcp6': tcp6,
  '/etc/passwd': 'root:x:0:0::/root:/bin/sh\napp:x:1001:1001::/:/bin/sh\nbad name\u001B[2J:x:65534:1::/:/bin/sh\n',
}
const tables = {
  async readText(path: string): Promise<string> {
    const text = files[path]
    if (text === undefined) throw new Error('ENOENT')
    return text
  },
}

test('the holder of a port is the user of the socket that listens there, and of no connection', async () => {
  expect(await holderOfPort(tables, 9475)).toBe('app (uid 1001)')
  expect(await holderOfPort(tables, 336)).toBe('root (uid 0)')
})

test('the holder of a port on IPv6 is found, and a name that is none is left out', async () => {
  expect(await holderOfPort(tables, 8080)).toBe('uid 65534')
})

test('nobody is named where the tables have no such socket, or cannot be read', async () => {
  expect(await holderOfPort(tables, 9476)).toBeUndefined()
  expect(await holderOfPort({ readText: async () => await Promise.reject(new Error('EACCES')) }, 336)).toBeUndefined()
  expect(listenerUid('garbage\n', 336)).toBeUndefined()
})
