import { expect, test } from 'vitest'
import { drawing, spansOf } from './drawing.ts'
import type { Film } from './picture.ts'
import type { NodeState } from './sights.ts'

const nodes = ['node-1', 'node-2']

/** A rollout of ten seconds; states by the second from which on they were seen. */
function film(seen: Readonly<Record<number, readonly NodeState[]>>): Film {
  const sights = Object.entries(seen).map(([second, states]) => ({ atMs: Number(second) * 1000, states, out: 0 }))
  return { rollout: { skyhook: 'demo', budget: 1, startedMs: 0, endedMs: 10_000 }, sights }
}

test('each span of a drawing is one state of a node, and all of the time is drawn', () => {
  const seen = film({ 0: ['working', 'waiting'], 4: ['complete', 'waiting'], 5: ['complete', 'working'] })
  expect(spansOf(seen, 0)).toEqual([
    { state: 'working', fromMs: 0, untilMs: 4_000 },
    { state: 'complete', fromMs: 4_000, untilMs: 10_000 },
  ])
  expect(spansOf(seen, 1).map(({ state }) => state)).toEqual(['waiting', 'working'])
})

test('a drawing names the rollout, its seconds and its budget, and each node once', () => {
  const text = drawing([film({ 0: ['complete', 'complete'] })], nodes, 'dark')
  expect(text).toContain('>demo: 10.0 s, at most 1 at a time<')
  for (const node of nodes) expect(text.split(`>${node}<`)).toHaveLength(2)
})

test('no bar of a drawing leaves its picture', () => {
  const text = drawing([film({ 0: ['rebooting', 'waiting'], 9.99: ['complete', 'complete'] })], nodes, 'light')
  const ends = [...text.matchAll(/x="([\d.]+)" y="[\d.]+" width="([\d.]+)"/g)].map(
    ([, x, width]) => Number(x) + Number(width),
  )
  expect(Math.max(...ends)).toBeLessThanOrEqual(861)
})
