import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createHostRoot } from '../host/root.ts'
import { loadPackage } from './config.ts'
import { ensureCopyDir } from './copy-dir.ts'

const run = promisify(execFile)
const packages = join(import.meta.dirname, '../../test/fixtures/packages')

test.each(['shellscript', 'nvssh', 'bcp'])('the fixture %s is a package without a warning', async (name) => {
  const loaded = await loadPackage(createHostRoot('/'), join(packages, name))
  expect(loaded).toMatchObject({ outcome: 'ready', warnings: [], config: { packageName: name } })
})

describe('shellscript, from its copy dir', () => {
  let folder: string
  const script = (): string => join(folder, 'skyhook_dir/shellscript_run.sh')
  const execute = (mode: string) => run(script(), [mode], { cwd: folder, env: { PATH: process.env.PATH, SKYHOOK_DIR: folder } })

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'shellscript-'))
    await ensureCopyDir({
      host: createHostRoot('/'),
      store: join(packages, 'shellscript'),
      digest: 'sha256:1',
      copyDir: folder,
      stepPaths: ['shellscript_run.sh'],
      configMap: {
        'apply.sh': 'cat "$SKYHOOK_DIR/configmaps/extra.txt"',
        'extra.txt': 'extra\n',
        'config.sh': 'exit 7',
        'config_check.sh': 'false',
      },
      nodeMetadata: { labels: '{}', annotations: '{}', packages: '{}' },
    })
  })
  afterAll(async () => {
    await rm(folder, { recursive: true })
  })

  test('runs the script of its mode, which sees the other keys', async () => {
    expect((await execute('apply')).stdout).toBe('extra\n')
  })

  test('ends as the script ends', async () => {
    await expect(execute('config')).rejects.toMatchObject({ code: 7 })
    await expect(execute('config_check')).rejects.toMatchObject({ code: 1 })
  })

  test('has nothing to do without one', async () => {
    expect((await execute('uninstall')).stdout).toBe('the configMap has no uninstall.sh: nothing to do\n')
  })
})
