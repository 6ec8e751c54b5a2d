import { expect, test } from 'vitest'
import { perObject, perObjectAndName } from './per-object.ts'

test('a function of an object is computed once for each object', () => {
  let calls = 0
  const sum = perObject(({ a, b }: { readonly a: number; readonly b: number }) => {
    calls++
    return a + b === 0 ? undefined : a + b
  })
  const [one, none] = [
    { a: 1, b: 2 },
    { a: 0, b: 0 },
  ]
  expect([sum(one), sum(one), sum({ ...one })]).toEqual([3, 3, 3])
  expect(calls).toBe(2)
  expect([sum(none), sum(none)]).toEqual([undefined, undefined])
  expect(calls).toBe(3)
})

test('a function per object and name computes once for each pair', () => {
  const computed: string[] = []
  const labelOf = perObjectAndName((labels: Readonly<Record<string, string>>, name: string) => {
    computed.push(name)
    return labels[name]
  })
  const [one, other] = [{ pool: 'a' }, { pool: 'b' }]
  const results = [labelOf(one, 'pool'), labelOf(one, 'zone'), labelOf(one, 'zone'), labelOf(other, 'pool')]
  expect(results).toEqual(['a', undefined, undefined, 'b'])
  expect(computed).toEqual(['pool', 'zone', 'pool'])
})
