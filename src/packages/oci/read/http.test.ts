import { expect, test } from 'vitest'
import { connectionError } from './http.ts'

const url = new URL('https://r.example:5000/v2/')
const neverAborted = new AbortController().signal
const error = (code: string, syscall?: string) => Object.assign(new Error(`it said ${code}`), { code, syscall })

test.each([
  ['ECONNREFUSED', 'connect', 'unreachable'],
  ['ENOTFOUND', 'getaddrinfo', 'unreachable'],
  ['EPERM', 'connect', 'unreachable'], // a firewall, not the disk
  ['CERT_HAS_EXPIRED', undefined, 'tls'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', undefined, 'tls'],
  ['EPROTO', 'write', 'tls'],
  ['ENOSPC', 'write', 'ENOSPC'], // errors of the disk are unchanged
  ['EACCES', 'open', 'EACCES'],
])('the error %s of %s is reported as %s', (code, syscall, expected) => {
  expect(connectionError(error(code, syscall), url, neverAborted)).toMatchObject({ code: expected })
})

test.each([
  [
    'getaddrinfo ENOTFOUND r.example',
    'ENOTFOUND',
    'getaddrinfo',
    'r.example:5000: the name does not resolve (ENOTFOUND)',
  ],
  [
    'unable to verify the first certificate; if the root CA is installed locally, try running Node.js with --use-…',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    undefined,
    'r.example:5000: unable to verify the first certificate (UNABLE_TO_VERIFY_LEAF_SIGNATURE)',
  ],
])('%s is said without what Node repeats or advises', (message, code, syscall, expected) => {
  const thrown = Object.assign(new Error(message), { code, syscall })
  expect(connectionError(thrown, url, neverAborted)).toMatchObject({ message: expected })
})

test('an aborted request rejects with the reason of the abort', () => {
  expect(connectionError(error('ECONNRESET', 'read'), url, AbortSignal.abort('enough'))).toBe('enough')
})
