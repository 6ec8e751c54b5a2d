import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { guardedStep } from '../../../test/kit/node-simulator/package-content.ts'
import { temporaryHost, writeBelow } from '../../../test/kit/files/temporary-folder.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import { publishCheckResults, publishStart, publishStepFlag } from './flags.ts'
import { recordVersion } from './history.ts'
import { fileOfOperator } from './last-writer.ts'

const state = '/var/lib/skyhook/demo'
let folder: string
let host: HostRoot

beforeEach(() => ({ folder, host } = temporaryHost()))

const put = (path: string, text: string): void => writeBelow(join(folder, state), path, text)
const found = async (): Promise<string | undefined> => (await fileOfOperator(host, state))?.slice(state.length + 1)

const olderHistory = (version: string): string =>
  `{"current-version": "${version}", "history": [{"version": "${version}", "time": "2026-11-20T10:32:09.12345+00:00"}]}`
const newerHistory = `{
  "current-version": "1.0.0",
  "history": [
    {
      "version": "1.0.0",
      "time": "2026-11-20T10:32:09.123456789Z"
    }
  ]
}
`
const olderFlag = 'last_run: 2026-11-20T10:32:09.123456\nstep_always_runs: False'
const newerFlag = `flags/probe/1.0.0/a.sh-${'0f'.repeat(32)}.flag`

const config: PackageConfig = { packageName: 'probe', packageVersion: '1.0.0', expectedConfigFiles: [], modes: {} }
const step = guardedStep('a.sh')

/** The state that an agent leaves when the package is complete. */
async function workOfAgent(): Promise<void> {
  await publishStart(host, state)
  await publishStepFlag(host, state, config, step, 1_790_066_282_120)
  await publishCheckResults(host, state, 'apply-check', [{ path: 'a_check.sh', failed: false }])
  await recordVersion(host, state, 'probe', '1.0.0', 1_790_066_282_123)
}

describe('files of an operator', () => {
  test.each([
    ['the history of its older program', 'history/probe.json', olderHistory('1.0.0')],
    ['the history of its newer program', 'history/probe.json', newerHistory],
    ['a flag of its older program', 'flags/probe/1.0.0/a.sh_W11fWzBd', olderFlag],
    ['a flag of its older program in a folder', 'flags/probe/1.0.0/a.sh_W11f', olderFlag],
    ['a flag of its newer program', newerFlag, 'last_run: 2026-11-20T10:32:09Z\n'],
  ])('%s is its own', async (_, path, text) => {
    put(path, text)
    expect(await found()).toBe(path)
  })

  test('a flag counts beside a history that a crash has cut off', async () => {
    put('history/probe.json', olderHistory('1.0.0').slice(0, 30))
    expect(await found()).toBeUndefined()
    put('flags/probe/1.0.0/a.sh_W11fWzBd', olderFlag)
    expect(await found()).toBe('flags/probe/1.0.0/a.sh_W11fWzBd')
  })

  test('a package that it uninstalled is not on the host', async () => {
    put('history/probe.json', olderHistory('uninstalled'))
    expect(await found()).toBeUndefined()
  })

  test('a folder without flags and history does not show a writer, and a missing folder does not either', async () => {
    expect(await found()).toBeUndefined()
    put('flags/START', '')
    put('flags/check_results', 'a.sh False')
    put('interrupts/flags/demo-1-1_probe_1.0.0/no_op.complete', '1.5')
    put('history', 'a file')
    expect(await found()).toBeUndefined()
  })
})

describe('files of an agent', () => {
  test('they are not taken for those of an operator', async () => {
    await workOfAgent()
    expect(await found()).toBeUndefined()
  })

  test('what an agent has continued is the agent’s, and what it has not is the operator’s', async () => {
    put(newerFlag, '')
    put('history/probe.json', newerHistory)
    await workOfAgent()
    expect(await found()).toBeUndefined()
    put('history/other.json', olderHistory('2.0.0'))
    expect(await found()).toBe('history/other.json')
  })
})
