/**
 * How far searches go. `make test` searches everything; `make check`, which has to end within a minute, takes samples
 * of test/model. `SEARCH_RUNS` and `SEARCH_SEED` search further by hand.
 */
export const isThorough = process.env['SEARCH'] === 'all'

export const runsOf = (sample: number, all = sample): number =>
  Number(process.env['SEARCH_RUNS'] ?? (isThorough ? all : sample))

/** The same lives each time. */
export const seedOf = (usual: number): number => Number(process.env['SEARCH_SEED'] ?? usual)

/** Whether a search makes the life that fails small: who only asks whether one fails does not wait for that. */
export const isShrinking = process.env['SEARCH_SHRINK'] !== '0'

/** Of an exhaustive search that disturbs each round of a run: every round, or every fifteenth. */
export const roundStep = isThorough ? 1 : 15
