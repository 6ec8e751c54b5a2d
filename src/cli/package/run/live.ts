/** Carries out the life of a package on a host, and judges each act. */
import { checkOf, type Mode, type PackageConfig } from '../../../schemas/package-config.ts'
import type { Interrupt } from '../../../schemas/skyhook.ts'
import { type Act, type InterruptRun, nameOf, type Version } from './life.ts'
import { type Change, changesBetween, isIgnored, type Snapshot } from './remains.ts'

/** The throw-away host, with the package's files of both versions on it. */
export type LifeHost = {
  readonly configs: Readonly<Partial<Record<Version, PackageConfig>>>
  /** Runs the steps of a mode as the agent does; a step whose index is in `skipped` was done before. */
  runMode(version: Version, mode: Mode, skipped: ReadonlySet<number>): Promise<ModeEnd>
  /** Starts the mode and kills every process of its middle step. */
  killMode(version: Version, mode: Mode): Promise<KilledMode>
  /** Returns what went wrong, for people; undefined when the interrupt took place. */
  interrupt(interrupt: Interrupt, run: InterruptRun): Promise<string | undefined>
  snapshot(): Promise<Snapshot>
}

export type ModeEnd = {
  readonly isOk: boolean
  /** Standard output and error. */
  readonly output: string
  /** Indexes of the steps that succeeded. */
  readonly succeeded: readonly number[]
}

export type KilledMode = {
  /** False where the step ended before it could be killed. */
  readonly isKilled: boolean
  /** Indexes of the steps that succeeded. */
  readonly succeeded: readonly number[]
}

export type ActReport = {
  readonly name: string
  /** `warning`: the agent would continue, but the author should know. `not-killed`: there was nothing to kill. */
  readonly outcome: 'passed' | 'failed' | 'warning' | 'not-killed'
  readonly detail: string
}

export type LifeReport = {
  readonly acts: readonly ActReport[]
  readonly leftBehind: readonly Change[]
  /** What is left behind and on the list to ignore. */
  readonly ignored: readonly Change[]
  readonly isOk: boolean
}

/** Ends at the first act that fails: what follows builds upon it. Calls back after each act. */
export async function live(
  acts: readonly Act[],
  host: LifeHost,
  onAct: (report: ActReport) => void,
): Promise<LifeReport> {
  const before = await host.snapshot()
  const done = new Map<string, Set<number>>()
  const reports: ActReport[] = []
  let leftBehind: readonly Change[] = []
  let ignored: readonly Change[] = []
  for (const act of acts) {
    const name = nameOf(act)
    let report: ActReport
    if (act.act === 'look-for-remains') {
      const changes = changesBetween(before, await host.snapshot())
      leftBehind = changes.filter((change) => !isIgnored(act.ignored, change))
      ignored = changes.filter((change) => isIgnored(act.ignored, change))
      report = { name, outcome: leftBehind.length === 0 ? 'passed' : 'failed', detail: '' }
    } else report = { name, ...(await carryOut(act, host, done)) }
    reports.push(report)
    onAct(report)
    if (report.outcome === 'failed' && act.act !== 'look-for-remains') break
  }
  return { acts: reports, leftBehind, ignored, isOk: reports.every(({ outcome }) => outcome !== 'failed') }
}

const passed = { outcome: 'passed', detail: '' } as const

async function carryOut(
  act: Exclude<Act, { act: 'look-for-remains' }>,
  host: LifeHost,
  done: Map<string, Set<number>>,
): Promise<Pick<ActReport, 'outcome' | 'detail'>> {
  switch (act.act) {
    case 'interrupt': {
      const why = await host.interrupt(act.interrupt, act.run)
      return why === undefined ? passed : { outcome: 'failed', detail: why }
    }
    case 'kill': {
      const { isKilled, succeeded } = await host.killMode(act.version, act.stage)
      record(host, act, succeeded, done)
      return isKilled ? passed : { outcome: 'not-killed', detail: 'it ended before it could be killed' }
    }
    case 'check-before': {
      const mode = checkOf(act.stage)
      const { isOk } = await host.runMode(act.version, mode, new Set())
      const detail = `${mode} passes although ${act.stage} has not run: it would not notice missing work`
      return isOk ? { outcome: 'warning', detail } : passed
    }
    case 'check-after': {
      const mode = checkOf(act.stage)
      const { isOk, output } = await host.runMode(act.version, mode, new Set())
      const detail = `${mode} fails: the work of ${act.stage} does not outlast the interrupt\n${output}`
      return isOk ? passed : { outcome: 'warning', detail }
    }
    case 'run': {
      const skipped = done.get(`${act.version} ${act.stage}`) ?? new Set<number>()
      const end = await host.runMode(act.version, act.stage, skipped)
      if (!end.isOk) return { outcome: 'failed', detail: end.output }
      record(host, act, end.succeeded, done)
      const check = await host.runMode(act.version, checkOf(act.stage), new Set())
      return check.isOk ? passed : { outcome: 'failed', detail: check.output }
    }
  }
}

/** Remembers the steps that the agent runs once: `idempotence: false`, in apply and post-interrupt. */
function record(
  { configs }: LifeHost,
  { version, stage }: Extract<Act, { act: 'run' | 'kill' }>,
  succeeded: readonly number[],
  done: Map<string, Set<number>>,
): void {
  if (stage !== 'apply' && stage !== 'post-interrupt') return
  const steps = configs[version]?.modes[stage] ?? []
  const key = `${version} ${stage}`
  const once = succeeded.filter((index) => steps[index]?.idempotence === 'agent')
  done.set(key, new Set([...(done.get(key) ?? []), ...once]))
}
