import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../kit/files/temporary-folder.ts'

const script = join(import.meta.dirname, '../fixtures/packages/journal/skyhook_dir/journal.sh')

test('a step of the journal package that is ended right after its first line says so', async () => {
  const folder = temporaryFolder()
  const journal = join(folder, 'journal')
  writeFileSync(journal, '')
  const env = {
    PATH: process.env['PATH'],
    JOURNAL_MODE: 'apply',
    JOURNAL_FILE: journal,
    STEPS_FILE: join(folder, 'steps'),
    SKYHOOK_RESOURCE_ID: 's-0-0-0-0-0-1_p_1.0.0',
    SKYHOOK_DIR: folder,
    SLEEP: '3',
  }
  const step = spawn('bash', [script], { env, stdio: 'ignore' })
  const ended = once(step, 'exit')
  while (statSync(journal).size === 0); // a timer would come too late
  step.kill('SIGTERM')
  expect(await ended).toEqual([143, null])
  const lines = readFileSync(journal, 'utf8').trimEnd().split('\n')
  expect(lines.map((line) => line.split(' ').slice(1).join(' '))).toEqual([
    's p 1.0.0 apply journal.sh',
    's p 1.0.0 apply journal.sh SIGTERM',
  ])
})
