import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemRandom } from '../../daemon/platform/system-clock.ts'
import { whyMountedNoexec } from './mounts.ts'
import { createHostRoot } from './host-root.ts'

let mount: string
beforeEach(() => {
  mount = mkdtempSync(join(tmpdir(), 'mounts-'))
  mkdirSync(join(mount, 'proc/1'), { recursive: true })
})
afterEach(() => rmSync(mount, { recursive: true }))

const line = (point: string, options: string): string => `25 1 8:1 / ${point} ${options} shared:1 - ext4 /dev/sda1 rw`
const why = async (...lines: readonly string[]): Promise<string | undefined> => {
  writeFileSync(join(mount, 'proc/1/mountinfo'), `${lines.join('\n')}\n`)
  return await whyMountedNoexec(createHostRoot(mount, systemRandom), '/var/lib/skyhook')
}
const root = line('/', 'rw,relatime')

describe('a folder in which nothing can be executed', () => {
  test.each<[string, string, string[]]>([
    ['itself a mount', '/var/lib/skyhook', [root, line('/var/lib/skyhook', 'rw,noexec')]],
    ['below a mount', '/var', [root, line('/var', 'rw,nosuid,noexec,relatime')]],
    ['on the root file system', '/', [line('/', 'rw,noexec')]],
    ['on a later mount over another', '/var', [root, line('/var', 'rw'), line('/var', 'rw,noexec')]],
  ])('nothing can be executed in a folder on a noexec mount: %s', async (_, point, lines) => {
    expect(await why(...lines)).toBe(
      `/var/lib/skyhook is on ${point}, which the host mounts noexec: no step can be executed there. ` +
        "Mount it with exec, or set the chart's copyDirRoot to a folder where programs may run",
    )
  })

  test('a noexec mount is found behind a link of the host, and with a blank in its name', async () => {
    mkdirSync(join(mount, 'var/lib'), { recursive: true })
    symlinkSync('/my data', join(mount, 'var/lib/skyhook'))
    expect(await why(root, line('/my\\040data', 'rw,noexec'))).toContain('is on /my data, which')
  })
})

describe('a folder in which programs run', () => {
  test.each<[string, string[]]>([
    ['on a mount of its own below one that forbids it', [line('/var', 'rw,noexec'), line('/var/lib/skyhook', 'rw')]],
    [
      'beside one whose name begins alike',
      [root, line('/var/lib/sky', 'rw,noexec'), line('/var/lib/skyhook2', 'rw,noexec')],
    ],
    ['hidden by a mount that allows it', [line('/var', 'rw,noexec'), line('/var', 'rw')]],
  ])('programs run in a folder on another mount: %s', async (_, lines) => expect(await why(...lines)).toBeUndefined())

  test('unreadable mounts mean that nothing is known against the folder', async () => {
    expect(await whyMountedNoexec(createHostRoot(mount, systemRandom), '/var/lib/skyhook')).toBeUndefined()
  })
})
