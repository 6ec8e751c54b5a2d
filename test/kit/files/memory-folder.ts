/**
 * Global set-up of the unit tests: their temporary files are in memory. Hundreds of tests write files that the product
 * syncs, and waiting for a busy disk takes longer than the rest of these tests. The files stay on disk if someone sets
 * TMPDIR, and where /dev/shm is missing, small or mounted `noexec`, as in many containers.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

const parent = '/dev/shm'
const tmpfsMagic = 0x01021994
/** The tests have ten MB at once. */
const minFreeBytes = 256 * 1024 ** 2
const prefix = 'unit-tests-'

/** Each project has a folder of its own: one of them ends while another goes on. */
export default function setUp({ config, name }: TestProject): (() => void) | undefined {
  const folder = join(parent, `${prefix}${process.pid}-${name}`)
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  if (process.env['TMPDIR'] !== undefined || !isFit(folder, remove)) return undefined
  config.env = { ...config.env, TMPDIR: folder } // of the workers of this project
  process.once('exit', remove) // Ctrl-C and failures inside the runner end without a teardown
  return remove
}

/** Makes the folder; false if files of the tests cannot be there. */
function isFit(folder: string, remove: () => void): boolean {
  try {
    const { type, bavail, bsize } = statfsSync(parent)
    if (type !== tmpfsMagic || bavail * bsize < minFreeBytes) return false
    for (const name of leftBehind()) rmSync(join(parent, name), { recursive: true, force: true })
    mkdirSync(folder)
    const program = join(folder, 'program')
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
    if (spawnSync(program).status === 0) return true
  } catch {
    // missing, or another user's
  }
  remove()
  return false
}

/** Folders of runs whose process was killed. */
const leftBehind = (): string[] =>
  readdirSync(parent).filter(
    (name) => name.startsWith(prefix) && !existsSync(`/proc/${Number.parseInt(name.slice(prefix.length), 10)}`),
  )
