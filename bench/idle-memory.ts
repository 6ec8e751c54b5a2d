/** `--idle MINUTES`: the memory of agents that have nothing to do, minute by minute. It must not grow. */
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryOfAgents } from './agent-memory.ts'
import type { Figure, Measurement } from './figure.ts'

/** Until then Node may still compile, and collect what the start has left. */
const settledAfterMinutes = 5
const growthMiB = 2

export const idleMemory = (minutes: number): Measurement => ({
  title: `memory of idle agents, every minute for ${minutes} minutes`,
  async run(bench) {
    const samples: (readonly number[])[] = []
    for (let minute = 0; minute <= minutes; minute++) {
      if (minute > 0) await sleep(60_000)
      samples.push((await memoryOfAgents(bench)).map(({ privateMiB }) => privateMiB))
    }
    const settled = samples[Math.min(settledAfterMinutes, samples.length - 1)] ?? []
    return bench.nodes.map((node, index): Figure => {
      const ofNode = samples.map((sample) => sample[index] ?? Number.NaN)
      return {
        name: `idle agent of ${node}: growth after minute ${settledAfterMinutes}, private`,
        unit: 'MiB',
        target: growthMiB,
        measured: (ofNode.at(-1) ?? Number.NaN) - (settled[index] ?? Number.NaN),
        detail: ofNode.map((value) => value.toFixed(1)).join(' '),
      }
    })
  },
})
