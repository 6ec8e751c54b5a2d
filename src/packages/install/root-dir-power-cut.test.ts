/** `root_dir/` on a disk that loses unsynced changes in a power cut. */
import { posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createDisk } from '../../../test/kit/host/disk.ts'
import { createSimulatedRoot } from '../../../test/kit/host/simulated-root.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { isTemporary } from '../../host/fs/temporary.ts'
import { installRootDir, uninstallRootDir } from './root-dir.ts'
import { rootDirRecordFile } from './root-dir-record.ts'

const store = '/store/abc'
const record = rootDirRecordFile('demo', 'tuning')
const recordsFolder = posix.dirname(record)
const seeds = 60

/** The content of the package. */
const contents: Readonly<Record<string, string>> = {
  '/etc/demo.d/deep/a.conf': 'a file',
  '/etc/demo.d/empty': 'a folder',
  '/etc/systemd/foo.service': 'a link',
  '/opt/demo/current': 'a link',
  '/srv/empty': 'a folder',
}
const files = ['/etc/demo.d/deep/a.conf', '/etc/systemd/foo.service', '/opt/demo/current']
const folders = ['/etc/demo.d', '/etc/demo.d/deep', '/etc/demo.d/empty', '/opt/demo', '/srv/empty']

type Machine = {
  /** The host as the current agent sees it. */
  root: HostRoot
  readonly cutPower: () => void
  /** Kills the agent at its n-th sync from now on, and starts the next agent. False: there were fewer syncs. */
  readonly killAt: (sync: number, act: () => Promise<unknown>) => Promise<boolean>
}

async function startMachine(seed: number): Promise<Machine> {
  const random = createSeededRandom(seed)
  const disk = createDisk({ wallMs: () => 0, monotonicMs: () => 0, random, volatileFolders: [] })
  let passed = async (): Promise<void> => undefined
  const startAgent = (): HostRoot => createSimulatedRoot({ disk, random, passed: async () => await passed() })
  const machine: Machine = {
    root: startAgent(),
    cutPower: () => disk.cutPower(),
    async killAt(sync, act) {
      const death = Promise.withResolvers<'killed'>()
      let syncs = 0
      passed = async () => {
        if (++syncs < sync) return
        death.resolve('killed')
        await new Promise(() => undefined) // a dead agent does nothing
      }
      const end = await Promise.race([act(), death.promise])
      passed = async () => undefined
      machine.root = startAgent()
      return end === 'killed'
    },
  }
  const { root } = machine
  for (const folder of ['/etc/systemd', '/opt', '/srv', recordsFolder, `${store}/root_dir`]) await root.mkdirp(folder)
  for (const [path, kind] of Object.entries(contents)) {
    const source = `${store}/root_dir${path}`
    await root.mkdirp(kind === 'a folder' ? source : posix.dirname(source))
    if (kind === 'a file') await root.writeFileDurable(source, kind, 0o644)
    if (kind === 'a link') await root.replaceLink(source, '/dev/null')
  }
  disk.syncAll()
  return machine
}

async function present(root: HostRoot, paths: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const path of paths) if ((await root.lstat(path)) !== undefined) found.push(path)
  return found
}

/** The differences between the expected files and those after each of many power cuts. */
async function differences(
  live: (machine: Machine) => Promise<unknown>,
  expected: readonly string[],
): Promise<readonly string[][]> {
  const found: string[][] = []
  for (let seed = 1; seed <= seeds; seed++) {
    const machine = await startMachine(seed)
    await live(machine)
    machine.cutPower()
    const names = await present(machine.root, [...files, ...folders])
    if (names.join() !== expected.join()) found.push(names)
  }
  return found
}

const install = ({ root }: Machine) => installRootDir(root, store, record)
const uninstall = ({ root }: Machine) => uninstallRootDir(root, record)

/** Runs in which the agent dies at one of its syncs, and the next agent repeats the work to its end. */
async function afterEachKill(
  check: (
    killAndRepeat: (machine: Machine, act: () => Promise<unknown>) => Promise<void>,
    when: string,
  ) => Promise<void>,
): Promise<void> {
  for (let sync = 1; ; sync++) {
    let wasKilled = false
    const killAndRepeat = async (machine: Machine, act: () => Promise<unknown>): Promise<void> => {
      wasKilled = await machine.killAt(sync, act)
      if (wasKilled) await act()
    }
    await check(killAndRepeat, `killed at sync ${sync}`)
    if (!wasKilled) return
  }
}

describe('after a power cut', () => {
  test('what was installed has all of its names', async () => {
    const live = async (machine: Machine): Promise<void> => {
      expect(await install(machine)).toMatchObject({ outcome: 'copied' })
    }
    expect(await differences(live, [...files, ...folders])).toEqual([])
  })

  test('what was uninstalled does not come back', async () => {
    const live = async (machine: Machine): Promise<void> => {
      await install(machine)
      expect(await uninstall(machine)).toEqual([])
    }
    expect(await differences(live, [])).toEqual([])
  })

  test('what was uninstalled is installed again as a whole', async () => {
    for (let seed = 1; seed <= seeds; seed++) {
      const machine = await startMachine(seed)
      await install(machine)
      await uninstall(machine)
      machine.cutPower()
      expect(await machine.root.lstat(record)).toBeUndefined()
      expect(await install(machine)).toMatchObject({ outcome: 'copied' })
    }
  })
})

describe('after an agent was killed and the power was cut', () => {
  test('what the next agent installed has all of its names', async () => {
    await afterEachKill(async (killAndRepeat, when) => {
      const live = (machine: Machine) => killAndRepeat(machine, () => install(machine))
      expect(await differences(live, [...files, ...folders]), when).toEqual([])
    })
  })

  test('what the next agent uninstalled does not come back', async () => {
    await afterEachKill(async (killAndRepeat, when) => {
      const live = async (machine: Machine): Promise<void> => {
        await install(machine)
        await killAndRepeat(machine, () => uninstall(machine))
      }
      expect(await differences(live, []), when).toEqual([])
    })
  })

  test('no temporary name is left of a copy that another version replaced', async () => {
    await afterEachKill(async (killAndRepeat, when) => {
      for (let seed = 1; seed <= seeds; seed++) {
        const machine = await startMachine(seed)
        let isRepeated = false
        await killAndRepeat(machine, async () => {
          if (isRepeated) await machine.root.remove(`${store}/root_dir${files[0]}`)
          isRepeated = true
          await install(machine)
        })
        machine.cutPower()
        expect((await machine.root.readTree('/etc')).filter(isTemporary), `${when}, seed ${seed}`).toEqual([])
      }
    })
  })
})

test('an installation after an interrupted uninstall is whole', async () => {
  const machine = await startMachine(1)
  await install(machine)
  let removals = 0
  const brokenRoot: HostRoot = {
    ...machine.root,
    async remove(path) {
      if (++removals === 2) throw new Error('EIO: the disk is broken')
      await machine.root.remove(path)
    },
  }
  await expect(uninstallRootDir(brokenRoot, record)).rejects.toThrow('EIO')
  expect(await install(machine)).toMatchObject({ outcome: 'copied' })
  expect(await present(machine.root, files)).toEqual(files)
})
