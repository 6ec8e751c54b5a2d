import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder, writeBelow } from '../../../test/kit/files/temporary-folder.ts'
import { scaffold } from './init.ts'

test('write_file of a new package leaves nothing but the file once it has run to its end, killed before or not', () => {
  const folder = temporaryFolder()
  const common = scaffold('mine', '1.0.0').find(({ path }) => path.endsWith('common.sh'))?.text ?? ''
  writeBelow(folder, 'common.sh', common)
  writeBelow(folder, 'etc/kept', 'x')
  const run = (input: string) =>
    spawnSync('bash', ['-c', `. ./common.sh; write_file etc/file < <(${input})`], { cwd: folder })
  const started = 'until compgen -G "etc/file*" >/dev/null; do :; done'
  expect(run(`${started}; kill -KILL $$`).signal).toBe('SIGKILL')
  expect(readdirSync(join(folder, 'etc'))).not.toContain('file')
  expect(run('echo whole').status).toBe(0)
  expect(readdirSync(join(folder, 'etc'))).toEqual(['file', 'kept'])
  expect(readFileSync(join(folder, 'etc/file'), 'utf8')).toBe('whole\n')
})
