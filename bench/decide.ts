/** Measures the CPU time of one decision on a node where everything is complete, the usual state of an agent. */
import { decide } from '../src/stages/decide.ts'
import { NodeSimulator } from '../test/kit/node-simulator/node-simulator.ts'
import { medianOf } from './memory.ts'

const skyhooks = 50
const samples = 50
/** About 20 ms on the smallest machines. */
const targetMs = 50

const packages = Object.fromEntries(
  ['a', 'b', 'c', 'd', 'e'].map((name) => [
    name,
    { version: '1.0.0', image: 'r/pkg', configMap: { x: name.repeat(200) }, env: [{ name: 'E', value: name }] },
  ]),
)
const node = new NodeSimulator()
for (let index = 0; index < skyhooks; index++) node.apply(`s${index}`, { packages })
node.settleFor(60_000)
const incomplete = [...node.views.keys()].filter((name) => node.status(name) !== 'complete')
if (incomplete.length > 0) throw new Error(`Skyhooks are not complete: ${incomplete.join(' ')}`)

const snapshot = node.snapshot()
const times = Array.from({ length: samples }, () => {
  const before = process.threadCpuUsage() // other processes of a busy machine do not count
  const { actions } = decide(snapshot, node.lastReasons)
  const { user, system } = process.threadCpuUsage(before)
  if (actions.length > 0) throw new Error(`a complete node still acts: ${actions.map(({ key }) => key).join(' ')}`)
  return (user + system) / 1000
})
const medianMs = medianOf(times)
const figures = `median ${medianMs.toFixed(1)} ms, maximum ${Math.max(...times).toFixed(1)} ms, target ${targetMs} ms`
process.stdout.write(`decide with ${skyhooks} Skyhooks of 5 complete packages: ${figures}\n`)
if (medianMs > targetMs) process.exitCode = 1
