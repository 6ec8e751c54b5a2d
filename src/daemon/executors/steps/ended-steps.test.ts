import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../../../test/kit/files/temporary-folder.ts'
import { createHostRoot } from '../../../host/fs/host-root.ts'
import { createSeededRandom } from '../../../../test/kit/virtual-clock.ts'
import type { Log } from '../../telemetry/log.ts'
import { createEndedSteps, type EndedStep, type EndedSteps } from './ended-steps.ts'

const step = (stepId: string, exitCode = 0): EndedStep => ({
  skyhook: 's',
  package: 'p',
  version: '1.0.0',
  mode: 'apply',
  step: 'run.sh',
  stepId,
  attempt: 1,
  startedAt: '2026-03-01T12:00:00.000Z',
  endedAt: '2026-03-01T12:00:01.000Z',
  durationMs: 1_000,
  result: 'ok',
  exitCode,
})

let folder: string
let lines: { readonly level: string; readonly fields: object; readonly message: string }[]
beforeEach(() => {
  folder = temporaryFolder()
  mkdirSync(join(folder, 'var/lib/skyhook/.agent'), { recursive: true })
  lines = []
})

const path = (): string => join(folder, 'var/lib/skyhook/.agent/ended-steps.json')

function startAgent(): EndedSteps {
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message })
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return createEndedSteps({ root: createHostRoot(folder, createSeededRandom(1)), log })
}

test('an end is logged, and again by the agent after this one', async () => {
  await startAgent().add(step('x', 3))
  const next = startAgent()
  await next.repeat()
  await next.repeat()
  expect(lines).toEqual([
    { level: 'info', fields: step('x', 3), message: 'step ended' },
    { level: 'info', fields: { ...step('x', 3), repeated: true }, message: 'step ended' },
  ])
})

test('an end that is recorded twice is kept once', async () => {
  const agent = startAgent()
  await agent.add(step('x', 3))
  await agent.add(step('y'))
  await agent.add(step('x', 4))
  expect(JSON.parse(readFileSync(path(), 'utf8'))).toEqual([step('y'), step('x', 4)])
})

test('the last hundred ends are kept', async () => {
  const agent = startAgent()
  await Promise.all(Array.from({ length: 105 }, (_, index) => agent.add(step(`x${index}`))))
  const kept = JSON.parse(readFileSync(path(), 'utf8')) as EndedStep[]
  expect([kept.length, kept[0]?.stepId, kept.at(-1)?.stepId]).toEqual([100, 'x5', 'x104'])
})

test.each(['', '{', '{}', '[null, 3, {"skyhook":"s"}]'])('a damaged file %j repeats nothing', async (text) => {
  writeFileSync(path(), text)
  const agent = startAgent()
  await agent.repeat()
  expect(lines).toEqual([])
  await agent.add(step('x'))
  expect(JSON.parse(readFileSync(path(), 'utf8'))).toEqual([step('x')])
})

test('a disk that takes nothing is reported, and no step fails for it', async () => {
  rmSync(join(folder, 'var/lib/skyhook/.agent'), { recursive: true })
  writeFileSync(join(folder, 'var/lib/skyhook/.agent'), '')
  const agent = startAgent()
  await agent.repeat()
  await agent.add(step('x'))
  expect(lines.map(({ level }) => level)).toEqual(['info', 'warn'])
})
