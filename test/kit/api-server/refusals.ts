/** The refusals of an API server, as Status objects with the real one's reasons and messages. */
import type { StatusDetails } from '../../../src/kube/errors.ts'
import type { Resource } from './resources.ts'

export type Answer = {
  readonly code: number
  readonly body: unknown
  readonly retryAfterSeconds?: number | undefined
  /** How long the server works on it before it answers. */
  readonly delayMs?: number
}

export type RefusalFields = {
  readonly reason?: string | undefined
  readonly details?: (StatusDetails & { readonly group?: string; readonly uid?: string }) | undefined
  readonly retryAfterSeconds?: number | undefined
  readonly delayMs?: number
}

/** Thrown while a request is handled; nothing of it takes effect. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly answer: Answer

  constructor(code: number, message: string, { reason, details, retryAfterSeconds, delayMs }: RefusalFields = {}) {
    super(message)
    const more = retryAfterSeconds === undefined ? details : { ...details, retryAfterSeconds }
    const body = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...(reason !== undefined && { reason }),
      ...(more !== undefined && { details: more }),
      code,
    }
    this.answer = { code, body, retryAfterSeconds, ...(delayMs !== undefined && { delayMs }) }
  }
}

const groupOf = ({ group }: Resource): { group?: string } => (group === '' ? {} : { group })
const qualified = ({ group }: Resource, what: string, name: string): string =>
  `${what}${group === '' ? '' : `.${group}`} "${name}"`
const detailsOf = (resource: Resource, name: string): { name: string; group?: string; kind: string } => ({
  name,
  ...groupOf(resource),
  kind: resource.plural,
})
const kindDetailsOf = (resource: Resource, name: string): { name?: string; group?: string; kind: string } => ({
  ...(name !== '' && { name }),
  ...groupOf(resource),
  kind: resource.kind,
})

export const notFound = (resource: Resource, name: string): Refusal =>
  new Refusal(404, `${qualified(resource, resource.plural, name)} not found`, {
    reason: 'NotFound',
    details: detailsOf(resource, name),
  })

export const alreadyExists = (resource: Resource, name: string, isBeingDeleted: boolean): Refusal =>
  new Refusal(
    409,
    `${isBeingDeleted ? 'object is being deleted: ' : ''}${qualified(resource, resource.plural, name)} already exists`,
    { reason: 'AlreadyExists', details: detailsOf(resource, name) },
  )

export const conflict = (resource: Resource, name: string, why: string): Refusal =>
  new Refusal(409, `Operation cannot be fulfilled on ${qualified(resource, resource.plural, name)}: ${why}`, {
    reason: 'Conflict',
    details: detailsOf(resource, name),
  })

export const modified = (resource: Resource, name: string): Refusal =>
  conflict(
    resource,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  )

/** A deletion whose precondition does not hold. */
export const deletionConflict = (resource: Resource, name: string, why: string): Refusal =>
  new Refusal(409, `Operation cannot be fulfilled on ${qualified(resource, resource.kind, name)}: ${why}`, {
    reason: 'Conflict',
    details: kindDetailsOf(resource, name),
  })

export type Cause = { readonly reason: string; readonly message: string; readonly field: string }

/** Named by the kind where the object was validated, by the resource where the store refused it. */
export const invalid = (resource: Resource, name: string, causes: readonly Cause[], by: 'kind' | 'plural'): Refusal => {
  const [{ field, message }] = causes as [Cause]
  return new Refusal(422, `${qualified(resource, resource[by], name)} is invalid: ${field}: ${message}`, {
    reason: 'Invalid',
    details: { ...(by === 'kind' ? kindDetailsOf(resource, name) : detailsOf(resource, name)), causes },
  })
}

export const unusablePatch = (): Refusal =>
  new Refusal(422, 'the server rejected our request due to an error in our request', { reason: 'Invalid', details: {} })

export const badRequest = (message: string): Refusal => new Refusal(400, message, { reason: 'BadRequest' })

export const expired = (message: string): Refusal => new Refusal(410, message, { reason: 'Expired' })

export const tooLargeResourceVersion = (asked: number, current: number): Refusal =>
  new Refusal(504, `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    reason: 'Timeout',
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] },
    retryAfterSeconds: 1,
    delayMs: 3_000,
  })
