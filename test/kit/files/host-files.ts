import { dirname } from 'node:path'
import type { Clock } from '../../../src/schemas/clock.ts'
import { createDisk, type Disk } from '../host/disk.ts'
import type { FileNode } from '../host/inodes.ts'
import { createSimulatedRoot } from '../host/simulated-root.ts'
import { createSeededRandom } from '../virtual-clock.ts'

/** How a test reads and writes the files on a simulated disk, at once. */
export function filesOf(disk: Disk) {
  const makeFolder = (path: string): void => {
    if (disk.locate(path).node !== undefined) return
    makeFolder(dirname(path))
    disk.makeFolder(disk.locate(path), 0o755)
  }
  return {
    makeFolder,
    /** With the folders above it. */
    write(path: string, content: string, mode = 0o644): void {
      makeFolder(dirname(path))
      const place = disk.locate(path)
      disk.write((place.node as FileNode | undefined) ?? disk.create(place, mode), Buffer.from(content), path)
    },
    read: (path: string): string => disk.read(disk.locate(path)).toString(),
    exists: (path: string): boolean => disk.locate(path).node !== undefined,
    remove: (path: string): void => disk.remove(disk.locate(path)),
    /** Names in the folder; none where there is no folder. */
    list: (path: string): string[] =>
      disk.locate(path).node === undefined ? [] : disk.list(disk.locate(path)).map(([name]) => name),
    modeOf: (path: string): number | undefined => disk.locate(path).node?.mode,
  }
}

export type HostFiles = ReturnType<typeof createHostFiles>

/** Files of a host in memory, and `root` as the agent has them. */
export function createHostFiles(clock: Clock) {
  const random = createSeededRandom(1)
  const disk = createDisk({
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
    random,
    volatileFolders: ['/run', '/proc', '/sys'],
  })
  return { ...filesOf(disk), disk, root: createSimulatedRoot({ disk, random, passed: async () => undefined }) }
}
