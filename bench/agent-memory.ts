/** Memory of the agents' processes on the hosts of the sandbox. */
import type { BenchContext } from './context.ts'
import type { Figure } from './figure.ts'
import { type Memory, parseRollup } from './memory.ts'

export async function memoryOfAgents({ box, nodes }: BenchContext): Promise<Memory[]> {
  const script = "cat /proc/$(pgrep -f '^/usr/bin/node .*skyhookd.cjs agent$')/smaps_rollup"
  return await Promise.all(
    nodes.map(async (node) => parseRollup(await box.must(['exec', node, '--', 'sh', '-c', script]))),
  )
}

/** The largest of the agents; the median would hide one that grows. */
export function memoryFigures(
  what: string,
  memories: readonly Memory[],
  { rssMiB, privateMiB } = { rssMiB: 75, privateMiB: 30 },
): Figure[] {
  const figure = (key: keyof Memory, kind: string, target: number): Figure => ({
    name: `${what}, ${kind}`,
    unit: 'MiB',
    target,
    measured: Math.max(...memories.map((memory) => memory[key])),
    detail: `per node ${memories.map((memory) => memory[key].toFixed(1)).join(' ')}`,
  })
  return [figure('rssMiB', 'RSS', rssMiB), figure('privateMiB', 'private', privateMiB)]
}
