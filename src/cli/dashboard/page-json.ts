import { plainText } from '../../schemas/plain-text.ts'

/** What the page is told. Texts of others have no effect there, nor in what it copies for a terminal. */
export const pageJson = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'string' ? plainText(inner) : inner))
