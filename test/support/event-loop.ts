/** Waiting for what the event loop brings, for tests of real files, processes and sockets. Nothing here knows time. */

/** Lets the event loop turn once: what has arrived by now is handled. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Turns until it is so. Without an end of its own: the test has one. */
export async function turnsUntil(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turn()
}
