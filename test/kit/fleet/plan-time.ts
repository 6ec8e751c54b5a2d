/** When what happens in a run, in virtual milliseconds since its start. */

/** Everything is given time to start. */
export const firstActionAtMs = 4_000
export const skyhooksAtMs = 9_000
/** From here on nodes work for the first time, one after the other. */
export const rolloutMs = [skyhooksAtMs, 90_000] as const
/** Every fault ends here, and edits that keep the fleet from completing are taken back. */
export const healAtMs = 360_000
/** The run ends at the latest after this, even if the fleet has not settled: 50 nodes one by one take half an hour. */
export const endAtMs = 3_600_000
/** The run ends when the fleet has been settled for this long. */
export const settledMs = 15_000
