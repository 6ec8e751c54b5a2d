/** The host cannot do the work now, whatever it is; the message says why and what helps. */
export class UnfitHostError extends Error {
  override readonly name = 'UnfitHostError'
}
