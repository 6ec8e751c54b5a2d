import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../kit/files/temporary-folder.ts'
import { bundlePreload } from './install-failpoints.ts'

let folder: string
let file: string

beforeEach(() => {
  folder = temporaryFolder()
  file = join(folder, 'commands')
})

describe('the preloaded program', () => {
  test('a process of another command than the agent ignores the commands', async () => {
    expect(await runPreloaded('health')).toEqual({ signal: null, passed: '' })
  })

  test('the agent is killed by the command at its failpoint', async () => {
    expect(await runPreloaded('agent')).toEqual({ signal: 'SIGKILL', passed: '1 fsync:journal#1\n' })
  })

  async function runPreloaded(command: string): Promise<{ signal: string | null; passed: string }> {
    const preload = join(folder, 'preload.cjs')
    const program = join(folder, 'agent.cjs')
    await bundlePreload(preload)
    writeFileSync(program, "globalThis[Symbol.for('skyhookd.failpoint')]?.('fsync:journal')\n")
    writeFileSync(file, '1 kill fsync:journal#1\n')
    const env = { NODE_OPTIONS: `--require=${preload}`, SKYHOOKD_FAILPOINT_ORDERS: file }
    const { signal } = spawnSync(process.execPath, [program, command], { env })
    const passed = existsSync(`${file}.passed`) ? readFileSync(`${file}.passed`, 'utf8') : ''
    return { signal, passed }
  }
})
