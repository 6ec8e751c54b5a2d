import { expect, test } from 'vitest'
import { formatLabels, parseExposition } from './exposition.ts'

test('samples are read with their labels, also escaped ones', () => {
  const text = ['# TYPE a gauge', 'a 1', 'b{x="1",y="q\\"\\\\\\n,}"} +Inf', 'c_bucket{le="0.5"} 2e3', ''].join('\n')
  expect(parseExposition(text)).toEqual([
    { name: 'a', labels: {}, value: 1 },
    { name: 'b', labels: { x: '1', y: 'q"\\\n,}' }, value: Infinity },
    { name: 'c_bucket', labels: { le: '0.5' }, value: 2000 },
  ])
})

test.each(['a', 'a one', 'a{x=1} 2', 'a{x="1} 2', 'a 1 1700000000000'])('the line %s is refused', (text) => {
  expect(() => parseExposition(text)).toThrow(/not (a sample|a value|labels)/)
})

test('labels are written in one order, and read again as they were', () => {
  const labels = { y: 'a"b\\c\nd', x: '1' }
  expect(formatLabels(labels)).toBe('{x="1",y="a\\"b\\\\c\\nd"}')
  expect(parseExposition(`m${formatLabels(labels)} 0`)).toEqual([{ name: 'm', labels, value: 0 }])
})
