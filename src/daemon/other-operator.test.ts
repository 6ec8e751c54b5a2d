import { describe, expect, test } from 'vitest'
import { packageSpec, type SampleLife, startSampleLife } from '../../test/kit/host/sample-life.ts'
import { filesOf } from '../../test/kit/files/host-files.ts'
import { journalPath } from '../host/fs/journal-file.ts'
import { skyhooksPath } from '../schemas/api.ts'
import { nodeWrightGroup, nodeWrightGroupPath } from '../schemas/nodewright.ts'

const packages = { tuned: packageSpec('tuned') }
const history = '/var/lib/skyhook/s/history/tuned.json'
const install = ['tuned apply', 'tuned apply-check', 'tuned config', 'tuned config-check']

const serve = ({ server }: SampleLife): void =>
  void server.otherGroups.push({ name: nodeWrightGroup, version: 'v1alpha1' })

/** The operator's older program wrote it. */
const leaveHistory = ({ host }: SampleLife): void =>
  filesOf(host.disk).write(history, '{"current-version": "1.0.0", "history": []}')

/** A run in which an agent starts with the state that `prepare` leaves, and gets its first Skyhook. */
async function startLife(
  prepare: (life: SampleLife) => void,
  options: Partial<Parameters<typeof startSampleLife>[0]> = {},
): Promise<SampleLife> {
  const life = await startSampleLife({ seed: 1, isKept: false, ...options })
  prepare(life)
  life.setKept(true)
  await life.apply(packages)
  return life
}

/** The next agent finds no journal, and a Node without state of an agent. */
async function forgetEverything(life: SampleLife): Promise<void> {
  life.setKept(false)
  life.agent()?.kill()
  await life.clock.advance(1_000)
  filesOf(life.host.disk).remove(journalPath)
  const own = Object.keys(life.node()?.metadata.annotations ?? {}).filter((key) => key.startsWith('skyhook.'))
  await life.admin.json('PATCH', '/api/v1/nodes/n1', {
    contentType: 'application/merge-patch+json',
    body: { metadata: { annotations: Object.fromEntries(own.map((key) => [key, null])) } },
  })
  life.setKept(true)
}

describe('an agent at its start', () => {
  test.each([
    ['the API server serves the group of NodeWright', serve, 'serves nodewright.nvidia.com'],
    ['the host has the history of an operator', leaveHistory, `has ${history}`],
  ])('it starts nothing where %s', async (_, prepare, found) => {
    const life = await startLife(prepare)
    await life.until(() => life.reason() !== undefined)
    await life.clock.advance(60_000)
    expect([life.steps(), life.status()]).toEqual([[], undefined])
    expect(life.reason()).toContain(found)
  })

  test.each([serve, leaveHistory])('it starts where the chart ignores the other operator', async (prepare) => {
    const life = await startLife(prepare, { settings: { ignoreNodeWright: true } })
    await life.until(() => life.status() === 'complete')
    expect(life.requests.filter(({ path }) => path === nodeWrightGroupPath)).toEqual([])
  })

  test('it asks once, also where Skyhooks come and go', async () => {
    const life = await startLife(() => undefined)
    await life.until(() => life.status() === 'complete')
    await life.apply({ tuned: packageSpec('tuned', undefined, '1.1.0') })
    await life.clock.advance(60_000)
    expect(life.requests.filter(({ path }) => path === nodeWrightGroupPath).length).toBe(1)
  })

  test('it waits where it may not ask, reports that, and starts once it may', async () => {
    const life = await startLife(({ server }) =>
      server.faults.rules.push({
        name: 'no discovery',
        fault: { kind: 'refuse', code: 403, reason: 'Forbidden' },
        matches: ({ path }) => path === nodeWrightGroupPath,
      }),
    )
    await life.until(() => life.reason() !== undefined)
    expect([life.steps(), life.reason()]).toEqual([[], expect.stringContaining('ApiRequestRefused')])
    expect(life.reason()).toContain('ask for the API group nodewright.nvidia.com')
    life.server.faults.rules.length = 0
    await life.until(() => life.status() === 'complete')
  })

  test('it continues work that has started, and nothing else', async () => {
    const life = await startLife(() => undefined)
    await life.until(() => life.steps().length === 2)
    serve(life)
    life.agent()?.kill()
    await life.until(() => life.status() === 'complete')
    expect(life.steps()).toEqual(install)
    await life.apply({ tuned: packageSpec('tuned', undefined, '1.1.0') })
    await life.until(() => life.reason()?.includes('Takeover') === true)
    await life.clock.advance(60_000)
    expect(life.steps()).toEqual(install)
  })
})

describe('files of an agent', () => {
  test('a journal that is lost with the annotations of the Node starts over, as on a new host', async () => {
    const life = await startLife(() => undefined)
    await life.until(() => life.status() === 'complete')
    await forgetEverything(life)
    await life.until(() => life.status() === 'complete')
    expect(life.steps()).toEqual([...install, ...install])
  })

  test('a Skyhook that is deleted and applied again works as before, with and without a journal', async () => {
    const life = await startLife(() => undefined)
    await life.until(() => life.status() === 'complete')
    for (const forget of [() => Promise.resolve(), forgetEverything]) {
      await life.admin.json('DELETE', `${skyhooksPath}/s`)
      await life.until(() => life.server.objects('skyhooks').length === 0 && life.status() === undefined)
      await forget(life)
      await life.apply(packages)
      await life.until(() => life.status() === 'complete')
    }
    expect(life.reason()).toBeUndefined()
  })

  test('work of an operator that an agent has continued is the agent’s', async () => {
    const life = await startLife(leaveHistory, { settings: { ignoreNodeWright: true } })
    await life.until(() => life.status() === 'complete')
    const continued = filesOf(life.host.disk).read(history)
    const next = await startLife((other) => filesOf(other.host.disk).write(history, continued))
    await next.until(() => next.status() === 'complete')
    expect([life.steps(), next.steps()]).toEqual([install, install])
  })
})
