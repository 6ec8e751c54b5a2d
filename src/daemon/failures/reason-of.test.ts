import { constants } from 'node:os'
import { describe, expect, test } from 'vitest'
import { BusError, NoReplyError, NotConnectedError } from '../../host/dbus/errors.ts'
import { ApiError, NoResponseError, WatchBehindError } from '../../kube/errors.ts'
import { ImageError } from '../../packages/oci/errors.ts'
import type { ImageErrorCode } from '../../schemas/catalogue/reason-codes.ts'
import { causeOf } from './reason-of.ts'

const systemError = (code: string): Error =>
  Object.assign(new Error(`${code}: some words, open '/var/lib/skyhook/x'`), { code, syscall: 'open' })
const refusal = (status: number): ApiError => new ApiError({ status, reason: 'Unknown', message: 'no' })

test.for(Object.keys(constants.errno))('%s of a file makes the host unusable, with path and remedy', (code) => {
  const cause = causeOf(systemError(code))
  expect(cause).toMatchObject({ reason: 'HostUnusable', code })
  expect(cause.detail).toContain('/var/lib/skyhook/x')
  expect(cause.remedy).not.toBe('')
})

test.for([400, 401, 403, 404, 405, 409, 410, 413, 415, 422])('status %i is a refusal', (status) => {
  const cause = causeOf(new Error('slot x was not renewed', { cause: refusal(status) }))
  expect(cause).toMatchObject({
    reason: 'ApiRequestRefused',
    code: `HTTP ${status}`,
    detail: `slot x was not renewed: HTTP ${status}: no`,
  })
  expect(cause.remedy).not.toBe('')
})

test.for([429, 500, 502, 503, 504])('status %i passes', (status) => {
  expect(causeOf(refusal(status))).toMatchObject({ reason: 'ApiServerUnavailable', code: `HTTP ${status}` })
})

test.for([
  [new NoResponseError('x', { mayHaveBeenSent: true, cause: systemError('ECONNRESET') }), 'ApiServerUnavailable'],
  [new WatchBehindError('the watch is late', { cause: refusal(409) }), 'ApiServerUnavailable'],
  [new NotConnectedError('closed'), 'HostUnreachable'],
  [new NoReplyError('timeout', 'no reply'), 'HostUnreachable'],
  [new BusError('org.freedesktop.DBus.Error.ServiceUnknown', 'no such name'), 'HostUnreachable'],
  [new BusError('org.freedesktop.DBus.Error.AccessDenied', 'polkit says no'), 'HostUnusable'],
  [new BusError('org.freedesktop.systemd1.LoadFailed', 'bad unit'), 'HostUnusable'],
  [new SyntaxError('Unexpected token'), 'HostUnusable'],
  [new Error('invented'), 'InternalError'],
  [new TypeError('x is not a function'), 'InternalError'],
  [Object.assign(new Error('bad'), { code: 'ERR_INVALID_ARG_TYPE' }), 'InternalError'],
  ['a thrown string', 'InternalError'],
  [undefined, 'InternalError'],
] as const)('%s is %s', ([error, reason]) => {
  const cause = causeOf(error)
  expect(cause.reason).toBe(reason)
  expect(cause.remedy).not.toBe('')
})

describe('registries', () => {
  const codes: readonly (readonly [ImageErrorCode, string])[] = [
    ['bad-image', 'InvalidPackage'],
    ['unauthorized', 'ImagePull'],
    ['unreachable', 'ImagePull'],
    ['bad-response', 'ImagePull'],
  ]
  test.for(codes)('%s is %s', ([code, reason]) => {
    expect(causeOf(new ImageError(code, 'x', { cause: systemError('ECONNREFUSED') }))).toMatchObject({ reason, code })
  })
})

test('a pause that the server asks for is passed on', () => {
  const error = new ApiError({ status: 429, reason: 'TooManyRequests', message: 'later', retryAfterMs: 7_000 })
  expect(causeOf(new Error('x', { cause: error })).retryAfterMs).toBe(7_000)
})
