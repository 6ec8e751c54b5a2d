/** How the cases are gone through: one by one on each node, or in rounds for the fault that strikes all nodes at once. */
import type { Bench } from './runner-host.ts'
import { withoutApiServer } from './faults.ts'
import type { Lane } from './runner.ts'
import { split, spread, type Case } from './matrix.ts'
import type { Expected, Result, Trials } from './trial.ts'

export type Place = { readonly bench: Bench; readonly trials: Trials }

export type Course = {
  readonly place: Place
  /** Another cluster, for rounds: of many, that wait for twenty seconds each, in which this one can be at work. */
  readonly openAside: (lanes: number) => Promise<Place>
  /** Begins no case after that. */
  readonly minutes: number | undefined
  readonly expected: Expected
  readonly tell: (one: Case, result: Result) => void
}

/** More rounds than these are worth another cluster. */
const fewRounds = 4
/** Nodes in a round are idle for most of it. */
const moreNodes = 2
/** Of the time, for rounds that come after the rest. */
const shareOfRounds = 0.3

export async function goThrough(cases: readonly Case[], course: Course): Promise<void> {
  const lanes = course.place.bench.lanes.length
  const beganMs = Date.now()
  const isOver = (share: number): boolean => course.minutes !== undefined && Date.now() - beganMs > course.minutes * 60_000 * share
  const { alone, rounds } = split(spread(cases), lanes)
  if (rounds.length <= fewRounds || alone.length === 0) {
    await oneByOne(course, alone, () => isOver(1 - shareOfRounds))
    return await inRounds(course, rounds, () => isOver(1))
  }
  const aside = async (): Promise<void> => {
    const place = await course.openAside(lanes + moreNodes)
    await inRounds({ ...course, place }, split(spread(cases), lanes + moreNodes).rounds, () => isOver(1))
  }
  await Promise.all([oneByOne(course, alone, () => isOver(1)), aside()])
}

/** A point that was not met is tried once more: the agent joined two writes. */
async function oneByOne({ place, expected, tell }: Course, cases: readonly Case[], isOver: () => boolean): Promise<void> {
  const { bench, trials } = place
  const queue = [...cases]
  const work = async (lane: Lane): Promise<void> => {
    for (let one = queue.shift(); one && !isOver(); one = queue.shift()) {
      const result = await trials.alone(lane, one, expected)
      tell(one, result.is === 'not met' ? await trials.alone(lane, one, expected) : result)
    }
  }
  await Promise.all(bench.lanes.map(work))
}

async function inRounds({ place, expected, tell }: Course, rounds: readonly (readonly Case[])[], isOver: () => boolean): Promise<void> {
  const { bench, trials } = place
  for (const round of rounds) {
    if (isOver()) return
    const standing = await Promise.all(round.map(async (one, index) => await trials.standAt(bench.lanes[index] as Lane, one)))
    const caught = standing.filter(({ isCaught }) => isCaught)
    await withoutApiServer(
      bench.box,
      caught.map(({ lane }) => lane.agent),
    )
    await Promise.all(standing.map(async (at) => tell(at.one, await trials.judge(at, expected))))
  }
}
