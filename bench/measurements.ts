/** The promised costs of the agent, one entry each: the measurement and its limit. */
import { setTimeout as sleep } from 'node:timers/promises'
import { paths } from '../test/e2e/kube.ts'
import { manifest } from '../test/e2e/skyhooks.ts'
import { changes } from './changes.ts'
import { idleCost } from './idle.ts'
import { medianFigure, type Figure, type Measurement } from './figure.ts'
import { parseRollup, type Memory } from './memory.ts'
import { packageChain, fivePackages, noop, onAllNodesSerially, onOneNode, service } from './rollouts.ts'
import { noopPackage, type BenchContext } from './context.ts'

const settleMs = 10_000
/** The agent returns spare memory every 10 s. */
const idleAfterWorkMs = 25_000
const idleSkyhooks = 50
const updatesPerSecond = 5

async function memoryOfAgents({ box, nodes }: BenchContext): Promise<Memory[]> {
  const script = "cat /proc/$(pgrep -f '^/usr/bin/node .*skyhookd.cjs agent$')/smaps_rollup"
  return await Promise.all(
    nodes.map(async (node) => parseRollup(await box.must(['exec', node, '--', 'sh', '-c', script]))),
  )
}

/** The largest of the agents; the median would hide one that grows. */
function memoryFigures(
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

const idle: Measurement = {
  title: `memory of the agents, idle for ${settleMs / 1000} s`,
  async run(bench) {
    await sleep(settleMs)
    return memoryFigures('idle agent', await memoryOfAgents(bench), { rssMiB: 65, privateMiB: 16 })
  },
}

/** An agent works for minutes and idles for weeks: its memory after work counts more than before. */
const idleAfterWork: Measurement = {
  title: `memory of the agents after that work, idle for ${idleAfterWorkMs / 1000} s`,
  async run(bench) {
    await sleep(idleAfterWorkMs)
    return memoryFigures('agent after all this work', await memoryOfAgents(bench))
  },
}

/** Skyhooks that select no node, and a client that keeps writing annotations on them. */
const manySkyhooks: Measurement = {
  title: `memory with ${idleSkyhooks} Skyhooks and ${updatesPerSecond} changes of them a second`,
  async run(bench) {
    const { api } = bench
    const names = Array.from({ length: idleSkyhooks }, (_, index) => `bench-idle-${index}`)
    try {
      for (const name of names) await api.json('POST', paths.skyhooks, { body: manifest(name, noopPackage(bench)) })
      for (let update = 0; update < (settleMs / 1000) * updatesPerSecond; update++) {
        const name = names[update % names.length]
        const body = { metadata: { annotations: { 'example.com/touched': String(update) } } }
        await api.json('PATCH', `${paths.skyhooks}/${name}`, { body, contentType: 'application/merge-patch+json' })
        await sleep(1000 / updatesPerSecond)
      }
      return memoryFigures(`agent among ${idleSkyhooks} Skyhooks`, await memoryOfAgents(bench))
    } finally {
      for (const name of names) await api.json('DELETE', `${paths.skyhooks}/${name}`).catch(() => undefined)
    }
  },
}

const start: Measurement = {
  title: 'start of the agent, again and again',
  async run({ box, history, nodes, runs }) {
    const node = nodes[0] ?? ''
    const samples: number[] = []
    for (let run = 0; run < runs; run++) {
      const pod = [...history.now.pods.values()].find(
        ({ metadata, spec }) =>
          metadata.namespace === 'skyhook' && spec?.nodeName === node && metadata.deletionTimestamp === undefined,
      )
      await box.kubectl(['delete', 'pod', '-n', 'skyhook', pod?.metadata.name ?? '', '--wait=true'])
      await box.kubectl(['rollout', 'status', 'daemonset/skyhookd', '-n', 'skyhook', '--timeout=60s'])
      const synced = /"sinceStartMs":(\d+)[^\n]*"synced"/.exec(await box.must(['logs', node]))
      if (synced) samples.push(Number(synced[1]))
      await sleep(1_000)
    }
    return [medianFigure('process start → synced', samples, { target: 150 })]
  },
}

export const measurements: readonly Measurement[] = [
  idle,
  idleCost,
  manySkyhooks,
  start,
  onOneNode(noop),
  onAllNodesSerially(noop),
  onOneNode(service),
  onAllNodesSerially(service),
  onOneNode(fivePackages),
  onOneNode(packageChain),
  changes,
  idleAfterWork,
]
