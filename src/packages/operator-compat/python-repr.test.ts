import { expect, test } from 'vitest'
import { pythonRepr } from './python-repr.ts'

test.each([
  [[], '[]'],
  [[0, 3], '[0, 3]'],
  [['a', 'b'], "['a', 'b']"],
  [["it's"], `["it's"]`],
  [['say "hi"'], `['say "hi"']`],
  [[`it's "hi"`], `['it\\'s "hi"']`],
  [['a\\b\n\r\t'], "['a\\\\b\\n\\r\\t']"],
  [['é\u0000\u007f\u00a0\u00ad'], "['é\\x00\\x7f\\xa0\\xad']"],
  [['\u200b\u3000\ud800'], "['\\u200b\\u3000\\ud800']"],
  [['\u{e0001}\u{1f600}'], "['\\U000e0001\u{1f600}']"],
])('the Python spelling of %j is exact', (items, repr) => {
  expect(pythonRepr(items)).toBe(repr)
})
