/** The promised costs of the agent, one entry each: the measurement and its limit. */
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryFigures, memoryOfAgents } from './agent-memory.ts'
import { changes } from './changes.ts'
import { eventLoop } from './event-loop.ts'
import { idleCost } from './idle.ts'
import { largeImage } from './large-image.ts'
import { medianFigure, type Measurement } from './figure.ts'
import { independentPackages, noop, onAllNodesSerially, onOneNode, packageChain, service } from './rollouts.ts'
import { amongSkyhooks, changingSkyhooks } from './other-skyhooks.ts'

const settleMs = 10_000
/** The agent returns spare memory every 10 s. */
const idleAfterWorkMs = 25_000

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
  changingSkyhooks,
  start,
  onOneNode(noop),
  onAllNodesSerially(noop),
  onOneNode(service),
  onAllNodesSerially(service),
  onOneNode(independentPackages(5, 1_000, '10,300 ms')),
  onOneNode(packageChain(5, 2_000, '40,200 ms')),
  onOneNode(independentPackages(10, 2_000)),
  onOneNode(packageChain(10, 4_000)),
  eventLoop,
  amongSkyhooks,
  changes,
  largeImage,
  idleAfterWork,
]
