import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createHostRoot, type HostRoot } from '../../../src/host/fs/host-root.ts'
import { createSeededRandom } from '../virtual-clock.ts'

/** A new folder of the test that runs, also from its `beforeEach`: it is removed after all that the test itself does. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The same as the root of a host. */
export function temporaryHost(): { readonly folder: string; readonly host: HostRoot } {
  const folder = temporaryFolder()
  return { folder, host: createHostRoot(folder, createSeededRandom(1)) }
}

/** Writes a file, and the folders above it. */
export function writeBelow(folder: string, path: string, content: string, mode = 0o644): void {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
  chmodSync(file, mode)
}
