/**
 * From a change of a complete Skyhook until it is complete again: a value of a configMap, a version, a removed package.
 * One of two packages changes. A time counts only if the hosts report the expected steps.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { PackageSpec, SkyhookSpec } from '../src/schemas/skyhook.ts'
import { pushJournalPackages, repository } from '../test/kit/files/journal-images.ts'
import { linesOf, summarize, withChecks } from '../test/kit/files/journal-lines.ts'
import { hostOf } from '../test/kit/cluster/host.ts'
import { medianFigure, type Measurement } from './figure.ts'
import { change, quietNode, withSkyhook, type BenchContext } from './context.ts'

type MeasuredChange = {
  readonly what: string
  readonly to: Partial<PackageSpec> | null
  /** Modes that the package has to run, in order. */
  readonly runs: readonly string[]
  readonly target: number
  readonly operator: string
}

const steps: readonly MeasuredChange[] = [
  {
    what: 'a configMap value',
    to: { configMap: { value: '2' } },
    runs: withChecks('config'),
    target: 400,
    operator: '3,600 ms',
  },
  {
    what: 'an upgrade',
    to: { version: '2.0.0' },
    runs: withChecks('upgrade', 'config'),
    target: 600,
    operator: '8,900 ms',
  },
  { what: 'a removal with uninstall', to: null, runs: withChecks('uninstall'), target: 500, operator: '6,100 ms' },
]

/** Between two changes, so that Events and the status of the Skyhook are written. */
const pauseMs = 1_500

export const changes: Measurement = {
  title: 'changes of a complete Skyhook on one node, images cached',
  async run(bench) {
    await pushJournalPackages(bench.box)
    const node = quietNode(bench)
    await changeAll(bench, node) // fetches the images
    const samples: number[][] = []
    for (let run = 0; run < bench.runs; run++) samples.push(await changeAll(bench, node))
    return steps.map(({ what, target, operator }, index) =>
      medianFigure(
        `${what}: changed → complete`,
        samples.map((times) => times[index] ?? Number.NaN),
        { target, operator },
      ),
    )
  },
}

/** One time for each of `steps`, in ms. Throws if a host ran other steps than the change needs. */
async function changeAll(bench: BenchContext, node: string): Promise<number[]> {
  const host = hostOf(bench.box, node)
  const journal: PackageSpec = { version: '1.2.3', image: `${bench.registry}/${repository}`, configMap: { value: '1' } }
  const spec: SkyhookSpec = { packages: { kept: journal, changed: journal } }
  return await withSkyhook(bench, spec, [node], async (name) => {
    const times: number[] = []
    for (const { what, to, runs } of steps) {
      await sleep(pauseMs)
      const before = (await linesOf(host, name)).length
      times.push(await change(bench, name, [node], { changed: to }))
      const ran = summarize((await linesOf(host, name)).slice(before))
      const due = runs.map((mode) => `changed ${mode}`)
      if (ran.join() !== due.join())
        throw new Error(`${what} ran ${ran.join(', ') || 'nothing'} instead of ${due.join(', ')}`)
    }
    return times
  })
}
