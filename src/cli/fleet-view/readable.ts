import { ApiError } from '../../kube/errors.ts'
import { known, unknown, type Known } from '../../stages/model/snapshot.ts'

/** Why something is not known, where no API server was asked for it. */
export class UnreadError extends Error {
  override readonly name = 'UnreadError'
}

/**
 * What was read, or why it is not known: the caller may not read it (401, 403), or the API server does not serve it
 * (404). Other errors are thrown. `what`: plural, as in "you may not list Leases of namespace skyhook".
 */
export async function readable<T>(what: string, read: Promise<T>): Promise<Known<T>> {
  try {
    return known(await read)
  } catch (error) {
    if (error instanceof UnreadError) return unknown(error.message)
    const why = whyHidden(error, what)
    if (why === undefined) throw error
    return unknown(why)
  }
}

/** Undefined for an error that does not say that it may not be read, or is not there. */
export function whyHidden(error: unknown, what: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined
  switch (error.status) {
    case 401:
    case 403:
      return `you may not read ${what}`
    case 404:
      return `the API server has no ${what}`
    default:
      return undefined
  }
}

/** The value of what is known, else what stands for it. */
export const valueOr = <T, U>(fact: Known<T>, otherwise: U): T | U => (fact.known ? fact.value : otherwise)

/** What `of` makes of it, where it is known. */
export const mapped = <T, U>(fact: Known<T>, of: (value: T) => U): Known<U> =>
  fact.known ? known(of(fact.value)) : fact
