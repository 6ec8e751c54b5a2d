import { execFileSync } from 'node:child_process'
import * as fc from 'fast-check'
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

const python = ((): string | undefined => {
  try {
    execFileSync('python3', ['-c', ''], { stdio: 'ignore' })
    return 'python3'
  } catch {
    return undefined
  }
})()

// Ranges that every version of Unicode agrees on: what was assigned lately is printable to one table and not to
// another.
const assignedText = fc.string({
  unit: fc
    .oneof(fc.integer({ min: 0, max: 0x36f }), fc.integer({ min: 0x2000, max: 0x2063 }))
    .map((code) => String.fromCodePoint(code)),
})

test.skipIf(python === undefined)('the spelling equals that of Python itself', () => {
  const lists = fc.sample(fc.array(fc.oneof(assignedText, fc.integer()), { maxLength: 4 }), 300)
  const answer = execFileSync(
    'python3',
    ['-c', 'import json,sys\nprint(json.dumps([repr(x) for x in json.load(sys.stdin)]))'],
    {
      input: JSON.stringify(lists),
    },
  )
  expect(lists.map((list) => pythonRepr(list))).toEqual(JSON.parse(answer.toString()))
})
