/** What Skyhooks cost an agent whose node they do not select. */
import { setTimeout as sleep } from 'node:timers/promises'
import { paths } from '../test/kit/cluster/kube.ts'
import { manifest } from '../test/kit/cluster/skyhooks.ts'
import { memoryFigures, memoryOfAgents } from './agent-memory.ts'
import { type BenchContext, noopPackage } from './context.ts'
import type { Measurement } from './figure.ts'
import { noop, onOneNode } from './rollouts.ts'

const changing = 50
const changesPerSecond = 5
const changesForMs = 10_000
const others = 300

/** Calls `during` with the names of so many Skyhooks that select no node, then deletes them. */
async function withOthers<T>(
  bench: BenchContext,
  count: number,
  during: (names: readonly string[]) => Promise<T>,
): Promise<T> {
  const { api } = bench
  const names = Array.from({ length: count }, (_, index) => `bench-idle-${index}`)
  try {
    for (const name of names) await api.json('POST', paths.skyhooks, { body: manifest(name, noopPackage(bench)) })
    return await during(names)
  } finally {
    for (const name of names) await api.json('DELETE', `${paths.skyhooks}/${name}`).catch(() => undefined)
  }
}

/** A client keeps writing annotations on them. */
export const changingSkyhooks: Measurement = {
  title: `memory with ${changing} Skyhooks and ${changesPerSecond} changes of them a second`,
  run: async (bench) =>
    await withOthers(bench, changing, async (names) => {
      for (let change = 0; change < (changesForMs / 1000) * changesPerSecond; change++) {
        const body = { metadata: { annotations: { 'example.com/touched': String(change) } } }
        const path = `${paths.skyhooks}/${names[change % names.length]}`
        await bench.api.json('PATCH', path, { body, contentType: 'application/merge-patch+json' })
        await sleep(1000 / changesPerSecond)
      }
      return memoryFigures(`agent among ${changing} Skyhooks`, await memoryOfAgents(bench))
    }),
}

/** The same work, with the same promises, as on a node of an empty cluster. */
export const amongSkyhooks: Measurement = {
  title: `a no-op package among ${others} Skyhooks of other nodes`,
  run: async (bench) =>
    await withOthers(bench, others, async () => [
      ...(await onOneNode({ ...noop, what: `no-op among ${others} others` }).run(bench)),
      ...memoryFigures(`agent among ${others} Skyhooks`, await memoryOfAgents(bench)),
    ]),
}
