import { ApiError } from '../../../kube/errors.ts'
import { known, unknown, type Known } from '../../../stages/model/snapshot.ts'

/** A value that is unknown without a request to an API server, and why. */
export class UnreadError extends Error {
  override readonly name = 'UnreadError'
}

/**
 * A value, or why it is unknown: the caller may not read it (401, 403), or the API server does not serve it (404).
 * Other errors are thrown. `what`: plural, as in "you may not list Leases of namespace skyhook".
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

/** Undefined for an error other than "may not be read" and "does not exist". */
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

/** The known value, otherwise a substitute. */
export const valueOr = <T, U>(fact: Known<T>, otherwise: U): T | U => (fact.known ? fact.value : otherwise)

/** Maps a known value. */
export const mapped = <T, U>(fact: Known<T>, of: (value: T) => U): Known<U> =>
  fact.known ? known(of(fact.value)) : fact
