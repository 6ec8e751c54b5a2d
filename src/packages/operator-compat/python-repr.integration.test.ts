import { execFileSync } from 'node:child_process'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { pythonRepr } from './flags.ts'

const python = ((): string | undefined => {
  try {
    execFileSync('python3', ['-c', ''], { stdio: 'ignore' })
    return 'python3'
  } catch {
    return undefined
  }
})()

// Ranges that are equal in every version of Unicode: recently assigned characters are printable in some tables only.
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
