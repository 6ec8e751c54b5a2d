/** The host currently cannot do any work; the message gives the reason and the remedy. */
export class UnfitHostError extends Error {
  override readonly name = 'UnfitHostError'
}
