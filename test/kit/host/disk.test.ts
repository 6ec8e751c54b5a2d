import { expect, test } from 'vitest'
import type { Random } from '../../../src/schemas/clock.ts'
import { createSeededRandom } from '../virtual-clock.ts'
import { createDisk } from './disk.ts'
import { createSimulatedRoot } from './simulated-root.ts'

function startDisk(random: Random = createSeededRandom(1)) {
  let nowMs = 0
  const clock = { wallMs: () => nowMs, monotonicMs: () => nowMs }
  const disk = createDisk({ ...clock, random, volatileFolders: ['/run'] })
  const root = createSimulatedRoot({ disk, random, passed: async () => undefined })
  return { disk, root, pass: (ms: number) => void (nowMs += ms) }
}

/** What may be read after a power cut, over many seeds. */
async function remainders(prepare: (disk: ReturnType<typeof startDisk>) => Promise<void>, path: string) {
  const found = new Set<string | undefined>()
  for (let seed = 1; seed <= 60; seed++) {
    const started = startDisk(createSeededRandom(seed))
    await prepare(started)
    started.disk.cutPower()
    found.add(await started.root.readText(path))
  }
  return found
}

test('what was written durably survives every power cut', async () => {
  const write = async ({ root }: ReturnType<typeof startDisk>): Promise<void> => {
    await root.mkdirp('/var/lib')
    await root.writeFileDurable('/var/lib/x', 'old', 0o600)
    await root.writeFileDurable('/var/lib/x', 'new', 0o600)
  }
  expect(await remainders(write, '/var/lib/x')).toEqual(new Set(['new']))
})

test('what was written without a sync may be missing, old, empty, cut off or whole', async () => {
  const write = async ({ root }: ReturnType<typeof startDisk>): Promise<void> => {
    await root.mkdirp('/var')
    await root.writeFileDurable('/var/x', 'old', 0o600)
    await root.writeFile('/var/x', 'new', 0o600)
    await root.writeFile('/var/y', 'new', 0o600)
  }
  expect(await remainders(write, '/var/x')).toEqual(new Set(['old', 'new', '', 'n', 'ne']))
  expect(await remainders(write, '/var/y')).toEqual(new Set([undefined, 'new', '', 'n', 'ne']))
})

test('a rename leaves the old or the new name, never both or none', async () => {
  const seen = new Set<string>()
  for (let seed = 1; seed <= 30; seed++) {
    const { disk, root } = startDisk(createSeededRandom(seed))
    await root.mkdirp('/a')
    await root.mkdirp('/b')
    await root.writeFileDurable('/a/x', 'x', 0o600)
    await root.rename('/a/x', '/b/y')
    disk.cutPower()
    seen.add([...(await root.readdir('/a')), ...(await root.readdir('/b'))].join())
  }
  expect(seen).toEqual(new Set(['x', 'y']))
})

test('the names of a folder are on disk once it was synced, with the renames that they need', async () => {
  const { disk, root } = startDisk()
  await root.mkdirp('/a')
  await root.mkdirp('/b')
  await root.createFile('/b/first', 0o600)
  await root.rename('/b/first', '/a/second')
  await root.syncFolder('/a')
  disk.cutPower('all')
  expect([await root.readdir('/a'), await root.readdir('/b')]).toEqual([['second'], []])
})

test('everything is on disk by itself after half a minute', async () => {
  const { disk, root, pass } = startDisk()
  await root.makeFolder('/var', 0o755)
  await root.writeFile('/var/x', 'new', 0o600)
  pass(30_000)
  disk.cutPower()
  expect(await root.readText('/var/x')).toBe('new')
})

test('a folder in memory is empty after a boot, and a full disk does not concern it', async () => {
  const { disk, root } = startDisk()
  await root.makeFolder('/var', 0o755)
  disk.setFull(true)
  await root.writeFile('/run/x', 'secret', 0o600)
  await expect(root.writeFile('/var/x', 'x', 0o600)).rejects.toThrow('ENOSPC')
  expect(await root.readdir('/var')).toEqual([])
  disk.cutPower()
  disk.mount()
  expect(await root.readdir('/run')).toEqual([])
})
