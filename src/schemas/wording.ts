/** Phrases that many messages have. Pure. */

/** `a, b, c`, or the first `max` of more and how many are left out. */
export const named = (names: readonly string[], max: number): string =>
  names.length > max ? `${names.slice(0, max).join(', ')} and ${names.length - max} more` : names.join(', ')

/** The same without a number that would change often, because each change is a write: `a, b, c` or `a, b, …`. */
export const someOf = (names: readonly string[], max: number): string =>
  (names.length > max ? [...names.slice(0, max), '…'] : names).join(', ')

/** `1 node`, `3 nodes`. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`
