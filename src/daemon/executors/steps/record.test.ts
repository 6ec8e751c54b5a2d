import { expect, test } from 'vitest'
import { packageSpec, startSampleLife } from '../../../../test/kit/host/sample-life.ts'
import { journalPath } from '../../../host/fs/journal-file.ts'
import { emptyJournal } from '../../../schemas/journal.ts'

const outputFolder = '/var/lib/skyhook/.agent/output'

type Life = Awaited<ReturnType<typeof startSampleLife>>

/** A host with a package that keeps no logs. Each of its steps runs for this time and writes a line. */
async function startLife(stepMs: number): Promise<Life & { output(): string[] }> {
  const life = await startSampleLife({
    seed: 4,
    runStep({ attempt }) {
      const { disk } = life.host
      const file = disk.create(disk.locate(`${outputFolder}/${attempt}.log`), 0o600)
      disk.create(disk.locate(`${outputFolder}/${attempt}.log.err`), 0o600)
      disk.write(file, Buffer.from('a secret\n'), outputFolder)
      return { durationMs: stepMs }
    },
  })
  await life.apply({
    tuned: { ...packageSpec('tuned'), env: [{ name: 'SKYHOOK_AGENT_WRITE_LOGS', value: 'false' }] },
  })
  const output = (): string[] => {
    const { disk } = life.host
    const folder = disk.locate(outputFolder)
    return folder.node === undefined ? [] : disk.list(folder).map(([name]) => name)
  }
  return { ...life, output }
}

const isComplete =
  (life: Life): (() => boolean) =>
  () =>
    life.status() === 'complete'

test('output that is not to be kept is gone after the rollout, whenever the agent was killed', async () => {
  const isJournal = (name: string): boolean => name === 'fsync:journal' || name === 'fsync:agent/'
  const undisturbed = await startLife(1_000)
  await undisturbed.until(isComplete(undisturbed))
  await undisturbed.clock.advance(10_000)
  expect(undisturbed.output()).toEqual([])
  const writes = undisturbed.events.filter((one) => one.event === 'effect' && isJournal(one.name)).length
  expect(writes).toBeGreaterThan(15)
  for (let at = 1; at <= writes; at++) {
    const life = await startLife(1_000)
    let passed = 0
    life.host.observe((one) => {
      if (one.event === 'effect' && isJournal(one.name) && ++passed === at) life.agent()?.kill()
    })
    await life.until(isComplete(life))
    await life.clock.advance(10_000)
    expect([at, life.output()]).toEqual([at, []])
  }
})

test('the output of a step that still runs stays for the next agent', async () => {
  const life = await startLife(60_000)
  await life.until(() => life.steps().length === 1)
  life.agent()?.kill()
  await life.clock.advance(30_000)
  expect(life.output()).toHaveLength(2)
  await life.until(isComplete(life))
  const lines = life.lines.flatMap(({ message, fields }) => (message === 'a secret' ? [fields] : []))
  expect(lines).toHaveLength(life.steps().length)
})

test('the output of a step that runs and that the journal does not know stays until it has ended', async () => {
  const life = await startLife(60_000)
  await life.until(() => life.steps().length === 1)
  life.agent()?.kill()
  const { disk } = life.host
  const journal = disk.locate(journalPath).node
  if (journal?.kind !== 'file') throw new Error('there is no journal')
  disk.write(journal, Buffer.from(JSON.stringify(emptyJournal('n'))), journalPath)
  await life.clock.advance(30_000)
  expect(life.reason()).toContain('are not in its journal')
  const [stray] = life.events.flatMap((one) => (one.event === 'stepStarted' ? [one.step.attempt] : []))
  expect(life.output()).toEqual([`${stray}.log`, `${stray}.log.err`])
  await life.until(isComplete(life))
  await life.clock.advance(10_000)
  expect(life.output()).toEqual([])
})
