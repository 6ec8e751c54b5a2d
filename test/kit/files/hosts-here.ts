/** What the hosts' campaign runs in this checkout, and the machine that it runs on. */
import { readdirSync, readFileSync } from 'node:fs'
import { release } from 'node:os'
import { join } from 'node:path'
import { type PlannedRun, plannedRuns } from './host-runs.ts'

/** Of all hosts. */
export const plannedHere = (): readonly PlannedRun[] =>
  plannedRuns(
    readdirSync(join(import.meta.dirname, '../../host'))
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => `test/host/${name}`),
  )

/** As the table of hosts names it. */
export function machineText(): string {
  const isV1 = readFileSync('/proc/self/mountinfo', 'utf8').includes(' - cgroup ')
  const isEmulated = readFileSync('/proc/cpuinfo', 'utf8').includes('QEMU TCG')
  const [kernel] = release().split('-')
  return `Linux ${kernel}, cgroup ${isV1 ? 'v1' : 'v2'}, ${isEmulated ? 'emulated' : 'native'} processor`
}
