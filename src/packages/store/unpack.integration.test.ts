import { spawnSync } from 'node:child_process'
import { linkSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { unpackPackage } from './unpack.ts'

let tempDir = ''
beforeEach(() => (tempDir = temporaryFolder()))

/** Path → content, `-> target`, or `dir`. Does not use Node's recursive readdir, which follows links. */
function listing(root: string, below = ''): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = join(below, entry.name)
    found[path] = entry.isDirectory()
      ? 'dir'
      : entry.isSymbolicLink()
        ? `-> ${readlinkSync(join(root, path))}`
        : readFileSync(join(root, path), 'utf8')
    if (entry.isDirectory()) Object.assign(found, listing(root, path))
  }
  return found
}

test('unpacking gives the same tree as the tar of the system', async () => {
  mkdirSync(join(tempDir, 'source/skyhook-package/deep/er'), { recursive: true })
  writeFileSync(join(tempDir, 'source/skyhook-package/deep/er/data'), 'x'.repeat(70_000))
  symlinkSync('er/data', join(tempDir, 'source/skyhook-package/deep/link'))
  linkSync(join(tempDir, 'source/skyhook-package/deep/er/data'), join(tempDir, 'source/skyhook-package/twin'))
  for (const format of ['gnu', 'pax', 'ustar', 'oldgnu']) {
    const { stdout, status } = spawnSync('tar', ['-C', join(tempDir, 'source'), `--format=${format}`, '-cz', '.'], {
      maxBuffer: 2 ** 24,
    })
    expect(status).toBe(0)
    writeFileSync(join(tempDir, `${format}.tgz`), stdout)
    const target = join(tempDir, format)
    await unpackPackage({ layers: [join(tempDir, `${format}.tgz`)], target })
    expect(listing(target)).toEqual(listing(join(tempDir, 'source/skyhook-package')))
  }
})
