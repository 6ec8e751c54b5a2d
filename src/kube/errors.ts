/**
 * How a request to the API server can fail: it was refused (`ApiError`), or not answered (`NoResponseError`). Callers
 * branch on the predicates below, never on message text. A canceled request throws the reason of its AbortSignal.
 */
import { isObject, parseJson } from '../schemas/json.ts'

/** A Kubernetes Status, as far as we read it. */
type Status = {
  readonly code?: number
  readonly reason?: string
  readonly message?: string
  readonly details?: StatusDetails
}

export type StatusDetails = {
  readonly name?: string
  readonly kind?: string
  readonly retryAfterSeconds?: number
  readonly causes?: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[]
}

type Refusal = {
  readonly status: number
  readonly reason: string
  readonly message: string
  readonly retryAfterMs?: number | undefined
  readonly details?: StatusDetails | undefined
  /** Method and path; absent for an error inside a watch. */
  readonly request?: string | undefined
}

/** The server's answer was not a success. Only 5xx leaves it open whether a write took effect. */
export class ApiError extends Error implements Refusal {
  override readonly name = 'ApiError'
  readonly status: number
  readonly reason: string
  readonly retryAfterMs: number | undefined
  readonly details: StatusDetails | undefined
  readonly request: string | undefined

  constructor({ status, reason, message, retryAfterMs, details, request }: Refusal) {
    super(message)
    this.status = status
    this.reason = reason
    this.retryAfterMs = retryAfterMs
    this.details = details
    this.request = request
  }
}

/** No complete answer came. `mayHaveBeenSent` is false only if no byte of the request can have reached the server. */
export class NoResponseError extends Error {
  override readonly name = 'NoResponseError'
  readonly mayHaveBeenSent: boolean

  constructor(message: string, options: { readonly mayHaveBeenSent: boolean; readonly cause?: unknown }) {
    super(message, { cause: options.cause })
    this.mayHaveBeenSent = options.mayHaveBeenSent
  }
}

/** A conflict with a version of the object that the agent's own watch does not show, although there was time for it. */
export class WatchBehindError extends Error {
  override readonly name = 'WatchBehindError'
}

/** The error of a refused request; a body that is not a Status (a proxy's page, for example) is kept as text. */
export function apiErrorFrom(
  code: number,
  retryAfterHeader: string | undefined,
  body: string,
  request?: string,
): ApiError {
  const text = `HTTP ${code}${body === '' ? '' : `: ${body.slice(0, 200).trim()}`}`
  const header = /^\d+$/.test(retryAfterHeader ?? '') ? Number(retryAfterHeader) : undefined
  const status = parseJson(body)
  return errorOf({ ...(isObject(status) && status), code }, text, { retryAfterSeconds: header, request })
}

/** The error in an ERROR event of a watch; its object is a Status, its code what a request would have answered. */
export function apiErrorFromEvent(object: unknown): ApiError {
  return errorOf(isObject(object) ? object : {}, 'the watch reported an error without a message')
}

function errorOf(
  { code = 500, reason = 'Unknown', message, details }: Status,
  defaultMessage: string,
  known: { readonly retryAfterSeconds?: number | undefined; readonly request?: string | undefined } = {},
): ApiError {
  const { retryAfterSeconds = details?.retryAfterSeconds, request } = known
  const retryAfterMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000
  return new ApiError({ status: code, reason, message: message ?? defaultMessage, retryAfterMs, details, request })
}

const hasStatus = (error: unknown, status: number): boolean => error instanceof ApiError && error.status === status

/** 404: the object, or its whole kind, is not there. */
export const isNotFound = (error: unknown): boolean => hasStatus(error, 404)

/** 409 that is not AlreadyExists: a precondition (resourceVersion, uid) did not hold. */
export const isConflict = (error: unknown): boolean => hasStatus(error, 409) && !isAlreadyExists(error)

/** 409 of a CREATE: somebody else has the name. */
export const isAlreadyExists = (error: unknown): boolean =>
  hasStatus(error, 409) && (error as ApiError).reason === 'AlreadyExists'

/** 422: the object is not valid, by its schema or as an admission policy sees it. Nothing was done. */
export const isInvalid = (error: unknown): boolean => hasStatus(error, 422)

/** 413 or 422: the request is too large or not valid. Repeating it cannot succeed. */
export const isContentRefused = (error: unknown): boolean => hasStatus(error, 413) || isInvalid(error)

/** 410: the server no longer has the resourceVersion or continue token. */
export const isGone = (error: unknown): boolean => hasStatus(error, 410)

/** 504: the server has not reached the resourceVersion that was asked for, and may never do so. */
export const isFutureVersion = (error: unknown): boolean =>
  hasStatus(error, 504) &&
  (error as ApiError).details?.causes?.some(({ reason }) => reason === 'ResourceVersionTooLarge') === true

/** 401: the token is not, or no longer, accepted. */
export const isUnauthorized = (error: unknown): boolean => hasStatus(error, 401)

/** 403: a right is missing, or an admission policy refuses the request. */
export const isForbidden = (error: unknown): boolean => hasStatus(error, 403)

/** 429: too fast, or (evictions) a disruption budget is exhausted. Nothing was done. */
export const isTooManyRequests = (error: unknown): boolean => hasStatus(error, 429)

/**
 * Whether a write may or may not have taken effect: connection lost, no answer in time, or a 5xx (the server answers
 * 500 and 504 also when its store was too slow). Look before you repeat anything that is not idempotent.
 */
export function isUnknownOutcome(error: unknown): boolean {
  if (error instanceof NoResponseError) return error.mayHaveBeenSent
  return error instanceof ApiError && error.status >= 500
}

/** Whether to repeat the request later: no answer, overload, or the server's own error. Not after a refusal. */
export function isTransient(error: unknown): boolean {
  if (error instanceof NoResponseError) return true
  return error instanceof ApiError && (error.status === 429 || error.status >= 500)
}

/** The limit applies although a server may ask for more: the agent's other requests continue meanwhile. */
const maxRetryAfterMs = 60_000

/** What the server asked us to wait before the next try, in ms: more than nothing, and a minute at most. */
export function retryAfterMsOf(error: unknown): number | undefined {
  const { retryAfterMs = 0 } = error instanceof ApiError ? error : {}
  return retryAfterMs === 0 ? undefined : Math.min(maxRetryAfterMs, retryAfterMs)
}
