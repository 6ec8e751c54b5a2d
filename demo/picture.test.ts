import { expect, test } from 'vitest'
import { picture, type Film } from './picture.ts'
import type { NodeState } from './sights.ts'

/** A rollout of so many seconds; states by the second from which on they were seen. */
function film(skyhook: string, seconds: number, seen: Readonly<Record<number, readonly NodeState[]>>): Film {
  const startedMs = 1_000_000
  const sights = Object.entries(seen).map(([second, states]) => ({
    atMs: startedMs + Number(second) * 1000,
    states,
    out: 0,
  }))
  return { rollout: { skyhook, budget: 1, startedMs, endedMs: startedMs + seconds * 1000 }, sights }
}
const legend = '   . waiting  w working  c cordoned  d drained  R rebooting  = complete'

test('a picture has a row for each node, and time from left to right', () => {
  const seen = film('demo', 10, { 0: ['working', 'waiting'], 5: ['complete', 'working'], 8: ['complete', 'complete'] })
  expect(picture([seen], ['a', 'b'], 23)).toEqual([
    '   demo 10 s',
    'a  wwwwwwwwww==========',
    'b  ..........wwwwww====',
    legend.slice(0, 23),
  ])
})

test.each<readonly [what: string, states: readonly NodeState[], mark: string]>([
  ['a reboot hides everything', ['cordoned', 'drained', 'rebooting', 'working', 'complete'], 'R'],
  ['a drained node hides that it was cordoned', ['cordoned', 'drained', 'complete'], 'd'],
  ['a cordoned node hides work', ['working', 'cordoned', 'working'], 'c'],
  ['work hides waiting', ['waiting', 'working', 'complete'], 'w'],
  ['of waiting and complete the later one is shown', ['complete', 'waiting'], '.'],
])('one column of a picture shows what is rare: %s', (_what, states, mark) => {
  const seen = film('x', 100, Object.fromEntries(states.map((state, index) => [0.1 * (index + 1), [state]])))
  expect(picture([seen], ['a'])[1]?.charAt(3)).toBe(mark)
})

test('the last column of a rollout shows how it ended', () => {
  const seen = film('x', 100, { 0: ['drained'], 99.9: ['complete'] })
  expect(picture([seen], ['a'])[1]).toMatch(/d=$/)
})

test('rollouts stand side by side, as wide as they took long, with room for a title', () => {
  const films = [film('demo', 2, { 0: ['complete'] }), film('a-long-name', 98, { 0: ['waiting'] })]
  const [titles = '', row = ''] = picture(films, ['node-1'])
  expect(titles).toMatch(/^ {8}demo 2 s {3}\|a-long-name 98 s/)
  expect(row).toMatch(/^node-1 {2}=+\|\.+$/)
})

test('a picture of three rollouts on the nodes of the sandbox fits on 80 columns', () => {
  const films = ['demo', 'rollout', 'runtime-required'].map((name) =>
    film(name, 33, { 0: ['waiting', 'working', 'drained'] }),
  )
  const lines = picture(films, ['node-1', 'node-2', 'node-3'])
  expect(lines).toHaveLength(5)
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80)
  expect(lines.join('')).toMatch(/^[ -~]*$/)
  expect(lines.at(-1)).toContain('= complete')
})
