import { plainText } from '../../schemas/plain-text.ts'

/** What the page gets. Texts of others have no effect there, and none in what the page copies for a terminal. */
export const pageJson = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'string' ? plainText(inner) : inner))
