import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bundlePreload } from './install-failpoints.ts'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'skyhookd-failpoints-'))
  file = join(folder, 'commands')
})
afterEach(() => rmSync(folder, { recursive: true }))

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
