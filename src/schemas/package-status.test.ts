import { expect, test } from 'vitest'
import { maxMessageLength, parsePackageStatus } from './package-status.ts'

const status = {
  v: 1,
  package: 'os-update',
  bootId: 'boot',
  message: 'all is well',
  requests: { run: true, interrupt: false },
  facts: {},
}
const parse = (change: object) => parsePackageStatus(JSON.stringify({ ...status, ...change }), 'os-update')

test('what is understood, whatever else is in it', () => {
  expect(parse({})).toEqual({
    outcome: 'valid',
    status: { bootId: 'boot', message: 'all is well', requests: { run: true, interrupt: false } },
  })
})

test.each<[string, string]>([
  ['two\nlines\u2028or\tthree ', 'two lines or three'],
  ['x'.repeat(300), `${'x'.repeat(maxMessageLength - 1)}…`],
  [`${'x'.repeat(maxMessageLength - 2)}😀 and more`, `${'x'.repeat(maxMessageLength - 2)}\ufffd…`],
])('a message is one line of bounded length: %j', (message, line) => {
  expect(parse({ message })).toMatchObject({ status: { message: line } })
})

test.each<[string, object, string]>([
  ['of a later format', { v: 2 }, 'its v is 2, and this agent reads 1'],
  ['of another package', { package: 'other' }, 'its package is "other" instead of "os-update"'],
  ['without a boot', { bootId: undefined }, 'its bootId is missing'],
  ['without a message', { message: 1 }, 'its message is no text'],
  [
    'that requests half',
    { requests: { run: true } },
    'its requests are not {"run": true or false, "interrupt": true or false}',
  ],
  ['that requests nothing readable', { requests: null }, 'its requests are not'],
])('one %s is refused', (_, change, problem) => {
  expect(parse(change)).toEqual({ outcome: 'invalid', problem: expect.stringContaining(problem) as string })
})

test.each([
  ['', 'it is no JSON'],
  ['{"v":1', 'it is no JSON'],
  ['[]', 'it is no JSON object'],
  ['null', 'it is no JSON object'],
])('text that is none is refused: %j', (text, problem) => {
  expect(parsePackageStatus(text, 'os-update')).toEqual({ outcome: 'invalid', problem })
})
