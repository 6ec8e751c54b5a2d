/** CPU time of an agent's container, with its children and the processes of probes. */
import type { BenchContext } from './context.ts'

/** In ns, by cgroup v1 or v2. */
const script = `
  pid=$(pgrep -f '^/usr/bin/node .*skyhookd.cjs agent$')
  v1=$(sed -n 's/^[0-9]*:[^:]*cpuacct[^:]*://p' /proc/$pid/cgroup)
  if [ -n "$v1" ]; then cat "/sys/fs/cgroup/cpuacct$v1/cpuacct.usage"
  else awk '/^usage_usec/ { print $2 * 1000 }' "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/$pid/cgroup)/cpu.stat"; fi`

export type CpuSample = { readonly atMs: number; readonly cpuMs: number }

export async function cpuOf({ box }: BenchContext, node: string): Promise<CpuSample> {
  const cpuNs = Number(await box.must(['exec', node, '--', 'sh', '-c', script]))
  return { atMs: performance.now(), cpuMs: cpuNs / 1e6 }
}

/** Share of a core. */
export const percentBetween = (before: CpuSample, after: CpuSample): number =>
  ((after.cpuMs - before.cpuMs) / (after.atMs - before.atMs)) * 100
