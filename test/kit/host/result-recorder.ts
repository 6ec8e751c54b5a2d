/** The recorder of a step's result (src/host/step/result-record.ts), as it acts on a simulated host. */
import { dirname } from 'node:path'
import type { UnitEnd } from '../../../src/host/systemd/unit-state.ts'
import type { Disk } from './disk.ts'
import type { FileNode, FolderNode } from './inodes.ts'

/**
 * Writes the record, and returns what waits for the disk: it answers whether the record is there. Undefined where the
 * record could not be written: the recorder is silent about it.
 */
export function writeRecord(
  disk: Disk,
  { folder, attempt }: { readonly folder: string; readonly attempt: string },
  end: UnitEnd,
  state: { readonly bootId: string; readonly isStopping: boolean; readonly invocationId: string },
): (() => boolean) | undefined {
  const { result, code, status } = end
  const system = result === 'success' ? '' : state.isStopping ? 'stopping' : 'running'
  const line = { v: 1, attempt, result, code, status, invocation: state.invocationId, boot: state.bootId, system }
  try {
    const place = disk.locate(`${folder}/${attempt}`)
    const file = (place.node as FileNode | undefined) ?? disk.create(place, 0o600)
    disk.write(file, Buffer.from(`${JSON.stringify(line)}\n`), place.path)
    return () => {
      try {
        disk.syncFile(file, place.path)
        disk.syncFolder(disk.locate(dirname(place.path)).node as FolderNode, dirname(place.path))
        return true
      } catch {
        return false
      }
    }
  } catch {
    return undefined
  }
}
