/**
 * What `make test` runs of the campaigns that `make prove` runs as a whole. Each sample has a fixed part, and one that
 * moves with the commit: many commits see far more than one.
 */
import { numberOfCommit } from './commit.ts'

/** A program whose last line is `N passed, N failed`, from the root. */
export type SampleRun = readonly [program: string, ...parameters: readonly string[]]

export type Samples = {
  readonly fleets: readonly SampleRun[]
  readonly mutants: readonly SampleRun[]
  readonly crashPoints: readonly SampleRun[]
  readonly chaos: readonly SampleRun[]
  /** Lives that no commit before has seen. */
  readonly searches: readonly SampleRun[]
}

/** Fleets take half a second of processor time each. */
const [fixedSeeds, movingSeeds] = [300, 150]
/** `make prove` runs the seeds before this one. */
const firstMovingSeed = 20_001

/** Each so many-th of the deliberate bugs that unit tests catch, and as many others. */
const everyMutant = 24

/** Beside the seven cases in which the agent once failed. */
const movingCases = 4

/** Each kind of fault and edit once, whatever the seed; booting and the last rollouts take two more. */
const chaosMinutes = 2

/** `commit`: the hash of HEAD. Without one there are only the fixed parts. */
export function samplesOf(commit: string | undefined): Samples {
  const number = commit === undefined ? undefined : numberOfCommit(commit)
  const fleets = 'test/fleet/run/campaign.ts'
  const mutants = 'test/mutants/campaign.ts'
  const first = String(firstMovingSeed + (number ?? 0))
  const moving: SampleRun = [fleets, '--seeds', String(movingSeeds), '--first', first, '--open', '--workers', '2']
  const shift = String(number ?? 0)
  return {
    fleets: [[fleets, '--seeds', String(fixedSeeds), '--workers', '2'], ...(number === undefined ? [] : [moving])],
    mutants: [
      [mutants, '--tier', 'unit', '--every', String(everyMutant), '--shift', shift],
      [mutants, '--tier', 'model', '--rest'],
      [mutants, '--tier', 'fleet'],
    ],
    crashPoints: [['test/faults/campaign.ts', '--runners', '2', '--sample', String(movingCases), '--shift', shift]],
    chaos: [['test/chaos/campaign.ts', '--minutes', String(chaosMinutes), '--seed', String((number ?? 1) % 100_000)]],
    searches: number === undefined ? [] : [['test/model/campaign.ts', '--seed', shift, '--open']],
  }
}
