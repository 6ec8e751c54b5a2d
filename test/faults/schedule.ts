/** Runs the cases one by one on each node, or in rounds for the fault that affects all nodes at once. */
import type { FaultCluster } from './fault-cluster.ts'
import { withoutApiServer } from './faults.ts'
import type { Runner } from './runner.ts'
import { split, spread, type Case } from './matrix.ts'
import type { Expected, Result, Trials } from './trial.ts'

export type TrialEnvironment = { readonly cluster: FaultCluster; readonly trials: Trials }

export type ScheduleOptions = {
  readonly environment: TrialEnvironment
  /** Opens another cluster for many rounds: each waits for twenty seconds, in which the first can work. */
  readonly openSecondCluster: (runners: number) => Promise<TrialEnvironment>
  /** Starts no case after this time. */
  readonly minutes: number | undefined
  readonly expected: Expected
  readonly report: (testCase: Case, result: Result) => void
}

/** More rounds than this are worth another cluster. */
const maxInlineRounds = 4
/** Nodes in a round are mostly idle, so more of them fit. */
const extraNodes = 2
/** Share of the time that is kept for rounds when they run after the rest. */
const roundsTimeShare = 0.3

export async function runSchedule(cases: readonly Case[], schedule: ScheduleOptions): Promise<void> {
  const runners = schedule.environment.cluster.runners.length
  const startedMs = Date.now()
  const isTimeUp = (share: number): boolean =>
    schedule.minutes !== undefined && Date.now() - startedMs > schedule.minutes * 60_000 * share
  const { single, rounds } = split(spread(cases), runners)
  if (rounds.length <= maxInlineRounds || single.length === 0) {
    await runIndividually(schedule, single, () => isTimeUp(1 - roundsTimeShare))
    return await runInRounds(schedule, rounds, () => isTimeUp(1))
  }
  const onSecondCluster = async (): Promise<void> => {
    const environment = await schedule.openSecondCluster(runners + extraNodes)
    await runInRounds({ ...schedule, environment }, split(spread(cases), runners + extraNodes).rounds, () =>
      isTimeUp(1),
    )
  }
  await Promise.all([runIndividually(schedule, single, () => isTimeUp(1)), onSecondCluster()])
}

/** A failpoint that was not reached gets one more attempt: the agent may have merged two writes. */
async function runIndividually(
  { environment, expected, report }: ScheduleOptions,
  cases: readonly Case[],
  isTimeUp: () => boolean,
): Promise<void> {
  const { cluster, trials } = environment
  const queue = [...cases]
  const work = async (runner: Runner): Promise<void> => {
    for (let testCase = queue.shift(); testCase && !isTimeUp(); testCase = queue.shift()) {
      const result = await trials.single(runner, testCase, expected)
      report(testCase, result.verdict === 'not reached' ? await trials.single(runner, testCase, expected) : result)
    }
  }
  await Promise.all(cluster.runners.map(work))
}

async function runInRounds(
  { environment, expected, report }: ScheduleOptions,
  rounds: readonly (readonly Case[])[],
  isTimeUp: () => boolean,
): Promise<void> {
  const { cluster, trials } = environment
  for (const round of rounds) {
    if (isTimeUp()) return
    const pending = await Promise.all(
      round.map(async (testCase, index) => await trials.runToPoint(cluster.runners[index] as Runner, testCase)),
    )
    const stopped = pending.filter(({ hasHitPoint }) => hasHitPoint)
    await withoutApiServer(
      cluster.box,
      stopped.map(({ runner }) => runner.agent),
    )
    await Promise.all(pending.map(async (at) => report(at.testCase, await trials.judge(at, expected))))
  }
}
