import { describe, expect, test } from 'vitest'
import { packageSpec, type SampleLife, startSampleLife } from '../../test/kit/host/sample-life.ts'
import { filesOf } from '../../test/kit/files/host-files.ts'
import { agentFolder, journalPath } from '../host/fs/journal-file.ts'
import { emptyJournal } from '../schemas/journal.ts'

/** The files that a step leaves, which only a journal distinguishes from garbage. */
const belongingsOf = (step: string): string[] => [
  `${agentFolder}/results/${step}`,
  `/run/skyhook/${step}.env`,
  `/run/skyhook/${step}.note`,
]
const oldImage = `${agentFolder}/images/${'b'.repeat(64)}/config.json`
const belongings = [...belongingsOf('0123456789abcdef'), oldImage]
const packages = { tuned: packageSpec('tuned') }

/** The journal of the previous agent; undefined: no journal. */
function leave({ host }: SampleLife, paths: readonly string[], journal: string | undefined): void {
  const files = filesOf(host.disk)
  for (const path of paths) files.write(path, 'x')
  if (journal === undefined) files.remove(journalPath)
  else files.write(journalPath, journal)
}
const remaining = ({ host }: SampleLife, paths: readonly string[]): string[] =>
  paths.filter((path) => filesOf(host.disk).exists(path))

/** An agent that finds the journal and gets its first Skyhook. */
async function startLife(journal: string): Promise<SampleLife> {
  const life = await startSampleLife({ seed: 1, isKept: false })
  leave(life, belongings, journal)
  life.setKept(true)
  await life.until(() => life.lines.some(({ message }) => message === 'synced'))
  await life.apply(packages)
  return life
}

describe('what an agent removes at its start', () => {
  const whole = JSON.stringify(emptyJournal('n'))
  test.each([
    ['cut', whole.slice(0, -3), belongings],
    ['empty', '', belongings],
    ['not a journal', '{"v":2}', belongings],
    ['of a newer agent', JSON.stringify({ ...emptyJournal('n'), v: 99 }), belongings],
    ['whole', whole, []],
  ])('an agent whose journal is %s removes nothing that a journal could still know', async (_, journal, kept) => {
    const life = await startLife(journal)
    await life.clock.advance(60_000)
    expect(remaining(life, belongings)).toEqual(kept)
  })

  test('a damaged journal is kept beside the new one, and one of a newer agent stays', async () => {
    const life = await startLife('{"v":2')
    await life.until(() => life.status() === 'complete')
    const names = life.files().filter((name) => name.startsWith('journal.json'))
    expect(names.sort()).toEqual(['journal.json', expect.stringMatching(/^journal\.json\.unreadable-\d+$/)])
    await life.clock.advance(60_000)
    expect(remaining(life, belongings)).toEqual(belongings)
  })

  test('an agent with a journal of a newer one says so and changes nothing', async () => {
    const newer = JSON.stringify({ ...emptyJournal('n'), v: 99 })
    const life = await startLife(newer)
    await life.until(() => life.reason()?.includes('written by a newer agent') === true)
    expect(life.journal()).toBe(newer)
  })
})

describe('steps that run and that no journal knows', () => {
  test.each([
    ['is damaged', '{"v":2'],
    ['is gone', undefined],
    ['does not know them', JSON.stringify(emptyJournal('n'))],
  ])('nothing starts beside a running step while the journal %s, and the Node says why', async (_, journal) => {
    let starts = 0
    const life = await startSampleLife({ seed: 1, runStep: () => ({ durationMs: starts++ === 0 ? 90_000 : 1_000 }) })
    await life.apply(packages)
    await life.until(() => life.steps().length === 1)
    const [step] = life.host.systemd.runningSteps()
    life.agent()?.kill()
    const itsFiles = belongingsOf(step?.attempt ?? '')
    leave(life, itsFiles, journal)
    await life.until(() => life.reason()?.includes(step?.unit ?? '') === true)
    expect(life.reason()).toContain('HostUnusable')
    await life.clock.advance(30_000)
    expect([life.status(), life.steps()]).toEqual(['blocked', ['tuned apply']])
    expect(remaining(life, itsFiles)).toEqual(itsFiles) // the step still writes there
    await life.until(() => life.status() === 'complete')
    expect(life.reason()).toBeUndefined()
  })
})
