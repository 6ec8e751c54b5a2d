import { describe, expect, test } from 'vitest'
import { authenticationRequest, encodeMessage, readAuthentication } from './wire.ts'

const call = { path: '/org/example', interface: 'org.example.Thing', member: 'Do', destination: 'org.example' }

test('encoding refuses a name, a path or a value that D-Bus does not have', () => {
  expect(() => encodeMessage({ ...call, path: 'no/slash', serial: 1, body: [] })).toThrow('Invalid object path')
  expect(() => encodeMessage({ ...call, serial: 1, signature: 's', body: ['nul \0'] })).toThrow('null byte')
  expect(() => encodeMessage({ ...call, serial: 1, signature: 't', body: [1.5] })).toThrow('BigInt')
  expect(() => encodeMessage({ ...call, serial: 1, signature: 't', body: [undefined] })).toThrow('expected value')
})

test('descriptors are not negotiated, so the bus keeps them from the agent', () =>
  expect(authenticationRequest(0)).not.toContain('UNIX_FD'))

describe('the answer to the authentication', () => {
  test('an incomplete authentication line is waited for', () =>
    expect(readAuthentication(Buffer.from('OK 12'))).toBeUndefined())
  test('reading the authentication leaves the bytes that follow it', () =>
    expect(readAuthentication(Buffer.from('OK 12\r\nl'))?.toString()).toBe('l'))
  test('a refused authentication is an error', () =>
    expect(() => readAuthentication(Buffer.from('REJECTED EXTERNAL\r\n'))).toThrow('REJECTED EXTERNAL'))
  test('an endless authentication answer is an error', () =>
    expect(() => readAuthentication(Buffer.alloc(20_000, 'x'))).toThrow('with a line'))
})
