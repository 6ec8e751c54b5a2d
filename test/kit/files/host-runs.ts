/** What `make prove` sees on each base disk of the sandbox (test/host/campaign.ts), and its table. Pure. */
import type { TestResult } from '../../../build/test/vitest-report.ts'
import { canRebootOn, type HostOs } from '../../sandbox/host-os.ts'

/** `bullseye` has no part: its containerd is older than the kubelet wants. */
const provenHosts = ['bookworm', 'trixie', 'trixie-broker', 'bare', 'container'] as const satisfies HostOs[]

/** A rollout in a cluster of one node: a package, a restart of a service, and a reboot where the host can be rebooted. */
export const mainJob = 'test/e2e/other-hosts.test.ts'

export type PlannedRun = { readonly os: HostOs; readonly file: string }

/** One that has passed. */
export type HostRun = PlannedRun & {
  /** What a reader compares with his own: the kernel, its version of cgroups, whether it is emulated. */
  readonly machine: string
  readonly commit: string
  readonly passed: number
  readonly skipped: readonly string[]
}

/** A container is not rebooted, which half of the tests of hosts do. */
export const plannedRuns = (hostTests: readonly string[]): readonly PlannedRun[] =>
  provenHosts.flatMap((os) => [mainJob, ...(canRebootOn(os) ? hostTests : [])].map((file) => ({ os, file })))

const isSame = (one: PlannedRun, other: PlannedRun): boolean => one.os === other.os && one.file === other.file

/** Those of which no run has passed on such a machine. */
export const leftOn = (
  isMachine: (machine: string) => boolean,
  planned: readonly PlannedRun[],
  runs: readonly HostRun[],
): PlannedRun[] => planned.filter((one) => !runs.some((run) => isSame(run, one) && isMachine(run.machine)))

/** As the record of the campaign has it, one a line. */
export const recordText = (run: HostRun): string => JSON.stringify(run)
export const recordedRuns = (names: readonly string[]): readonly HostRun[] =>
  names.map((name) => JSON.parse(name) as HostRun)

type Test = Pick<TestResult, 'title' | 'ancestorTitles' | 'status'>

/** Of the report of one file: the file or a group of which nothing ran by its own name. */
export function skippedOf(file: string, tests: readonly Test[]): readonly string[] {
  const isSkipped = ({ status }: Test): boolean => status === 'pending' || status === 'skipped'
  if (tests.every(isSkipped)) return [`\`${file}\``]
  const groupOf = ({ ancestorTitles: [group] }: Test): string | undefined => group
  const names = tests.filter(isSkipped).map((test) => {
    const group = groupOf(test)
    const others = tests.filter((other) => groupOf(other) === group)
    return group !== undefined && others.every(isSkipped) ? group : test.title
  })
  return [...new Set(names)]
}

const markers = ['<!-- hosts: written by make prove -->', '<!-- end of hosts -->'] as const
const heading = ['| Host | Machine | Commit | Main job | Tests of the host |', '|---|---|---|---|---|'] as const

/**
 * The page with a row for each host and machine on which all runs have passed, at the commit of the last one. Other
 * rows stay as they are. @throws where the page has no table
 */
export function withRows(page: string, runs: readonly HostRun[], planned: readonly PlannedRun[]): string {
  const [before = '', rest] = page.split(markers[0])
  const [table, after] = rest?.split(markers[1]) ?? []
  if (table === undefined || after === undefined) throw new Error(`the page lacks the markers ${markers.join(' and ')}`)
  const rows = new Map(
    table
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => [line.split(' | ').slice(0, 2).join(' | '), line]),
  )
  for (const machine of new Set(runs.map((run) => run.machine)))
    for (const os of provenHosts) {
      const wanted = planned.filter((one) => one.os === os)
      const own = runs.filter((run) => run.machine === machine && wanted.some((one) => isSame(run, one)))
      if (wanted.some((one) => !own.some((run) => isSame(run, one)))) continue
      const key = `| \`${os}\` | ${machine}`
      const tests = testsText(own.filter(({ file }) => file !== mainJob))
      rows.set(key, `${key} | ${own.at(-1)?.commit} | ${mainJobText(os)} | ${tests} |`)
    }
  const orderOf = (line: string): number => provenHosts.findIndex((os) => line.startsWith(`| \`${os}\` `))
  const lines = [...rows.values()].toSorted((a, b) => orderOf(a) - orderOf(b))
  return [before, markers[0], '\n', [...heading, ...lines].join('\n'), '\n', markers[1], after].join('')
}

const mainJobText = (os: HostOs): string => (canRebootOn(os) ? 'passed' : 'passed, without a reboot')

function testsText(runs: readonly HostRun[]): string {
  if (runs.length === 0) return '–'
  const passed = runs.reduce((sum, run) => sum + run.passed, 0)
  const skipped = runs.flatMap((run) => run.skipped).map((name) => name.replaceAll('|', '\\|'))
  return `${passed} passed${skipped.length === 0 ? '' : `; skipped: ${skipped.join('; ')}`}`
}
