/** Whose turn it is where agents are elected that cannot count: supervisors resign for half an hour, as those of agents. */
import { afterEach, expect, test } from 'vitest'
import { sampleServer } from '../../test/kit/api-server/sample-server.ts'
import { createSeededRandom } from '../../test/kit/virtual-clock.ts'
import { startElection, type Election } from './election.ts'

const resignForMs = 30 * 60_000
const termMs = 60_000
const never = Infinity

let stops: AbortController[] = []
afterEach(() => {
  for (const stop of stops) stop.abort(new Error('test is over'))
  stops = []
})

/** The agents a, b, …; `ableAtMs`: from when on each can count. One that cannot for a minute resigns. */
function fleet(ableAtMs: readonly number[], seed: number) {
  const api = sampleServer()
  const elected: { readonly name: string; readonly atMs: number }[] = []
  let countedAtMs: number | undefined
  for (const [index, ableFromMs] of ableAtMs.entries()) {
    const name = String.fromCodePoint(97 + index)
    const stop = new AbortController()
    stops.push(stop)
    const campaign = (term: AbortSignal): void => {
      const startedMs = api.clock.monotonicMs()
      elected.push({ name, atMs: startedMs })
      const look = (): void => {
        const nowMs = api.clock.monotonicMs()
        if (term.aborted || countedAtMs !== undefined) return
        if (nowMs >= ableFromMs) countedAtMs = nowMs
        else if (nowMs - startedMs >= termMs) election.resign(resignForMs, 'has not counted')
        else api.clock.startTimer(1_000, look)
      }
      api.clock.startTimer(1_000, look)
    }
    const election: Election = startElection(
      { transport: api.connect({ name }), namespace: 'default', clock: api.clock },
      {
        identity: name,
        agents: () => ableAtMs.length,
        published: () => ({ agents: undefined, countedAtMs: undefined }),
        onAgents: () => undefined,
        onElected: campaign,
        onLost: () => undefined,
        random: createSeededRandom(100 * seed + index),
        signal: stop.signal,
      },
    )
  }
  return { elected, countedAtMs: () => countedAtMs, pass: async (ms: number) => await api.clock.advance(ms) }
}

const seeds = Array.from({ length: 20 }, (_, index) => index)
const afterMs = 120_000

test.each([
  ['one, whose cause is over', [afterMs], 180_000],
  ['two, one of which can count after two minutes', [afterMs, never], 250_000],
  ['two, both of which can count after two minutes', [afterMs, afterMs], 190_000],
  ['three, one of which can count after two minutes', [afterMs, never, never], 360_000],
  ['eight, of which two cannot count', [never, never, 0, 0, 0, 0, 0, 0], 150_000],
] as const)('in a fleet of %s, somebody counts in a bounded time', async (_, ableAtMs, boundMs) => {
  for (const seed of seeds) {
    const { countedAtMs, pass } = fleet(ableAtMs, seed)
    await pass(boundMs)
    expect(countedAtMs(), `seed ${seed}`).toBeLessThan(boundMs)
  }
})

test.each([2, 3, 8])('%d agents that cannot count have their turns, none twice within two terms', async (agents) => {
  const { elected, pass } = fleet(
    Array.from({ length: agents }, () => never),
    1,
  )
  await pass(3_600_000)
  const names = elected.map(({ name }) => name)
  expect(new Set(names).size).toBe(agents)
  const least = Math.min(agents, 3)
  for (let at = least; at <= names.length; at++) expect(new Set(names.slice(at - least, at)).size).toBe(least)
  expect(names.length).toBeLessThan(60)
  expect(names.length).toBeGreaterThan(25)
})
