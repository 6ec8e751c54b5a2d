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

test('a status file is read, whatever else is in it', () => {
  expect(parse({})).toEqual({
    outcome: 'valid',
    status: { bootId: 'boot', message: 'all is well', requests: { run: true, interrupt: false } },
  })
})

test.each<[string, string]>([
  ['two\nlines\u2028or\tthree ', 'two lines or three'],
  ['x'.repeat(300), `${'x'.repeat(maxMessageLength - 1)}…`],
  [`${'x'.repeat(maxMessageLength - 2)}😀 and more`, `${'x'.repeat(maxMessageLength - 2)}\ufffd…`],
])('the message %j is cut to one line of bounded length', (message, line) => {
  expect(parse({ message })).toMatchObject({ status: { message: line } })
})

test.each<[string, object, string]>([
  ['of a later format', { v: 2 }, '"v" is 2, this agent reads 1'],
  ['of another package', { package: 'other' }, '"package" is "other" instead of "os-update"'],
  ['without a boot', { bootId: undefined }, '"bootId" is missing'],
  ['without a message', { message: 1 }, '"message" must be a string'],
  [
    'that requests half',
    { requests: { run: true } },
    '"requests" must be {"run": true or false, "interrupt": true or false}',
  ],
  ['that requests nothing readable', { requests: null }, '"requests" must be'],
])('a status file %s is invalid', (_, change, problem) => {
  expect(parse(change)).toEqual({ outcome: 'invalid', problem: expect.stringContaining(problem) as string })
})

test.each([
  ['', 'not valid JSON'],
  ['{"v":1', 'not valid JSON'],
  ['[]', 'not a JSON object'],
  ['null', 'not a JSON object'],
])('the text %j is not a status file', (text, problem) => {
  expect(parsePackageStatus(text, 'os-update')).toEqual({ outcome: 'invalid', problem })
})
