/**
 * How late the agent's event loop is while it works: a late loop renews slots late and answers probes late. The agent
 * itself does not measure it, as that wakes the processor a thousand times a second; the debugger starts and reads it.
 */
import { copyFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { hostOf } from '../test/kit/cluster/host.ts'
import { quietNode, rollOut, noopPackage, type BenchContext } from './context.ts'
import { cpuOf } from './container-cpu.ts'
import { medianFigure, type Measurement } from './figure.ts'

/** The debugger listens on the host's loopback, a moment after the signal. */
const opensWithinMs = 1_000
const folder = '/var/tmp/bench'

/** Evaluates its second argument in the process that is debugged, and prints the value as JSON. */
const client = `
const [{ webSocketDebuggerUrl }] = await (await fetch('http://127.0.0.1:9229/json')).json()
const socket = new WebSocket(webSocketDebuggerUrl)
await new Promise((resolve) => socket.addEventListener('open', resolve))
const answered = new Promise((resolve) => socket.addEventListener('message', ({ data }) => resolve(JSON.parse(data))))
const params = { expression: process.argv[2], returnByValue: true }
socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params }))
const { result, error } = await answered
if (error) throw new Error(error.message)
console.log(JSON.stringify(result.result.value ?? null))
socket.close()
`
const start = `globalThis.benchDelay =
  process.getBuiltinModule('node:perf_hooks').monitorEventLoopDelay({ resolution: 1 }); benchDelay.enable()`
const reset = 'void benchDelay.reset()'
const read = '[benchDelay.percentile(99) / 1e6, benchDelay.max / 1e6]'
const stop = `benchDelay.disable(); void setTimeout(() => process.getBuiltinModule('node:inspector').close())`

export const eventLoop: Measurement = {
  title: 'delay of the event loop and CPU time of the container during no-op packages',
  async run(bench) {
    const node = quietNode(bench)
    const evaluate = await debuggerOf(bench, node)
    await rollOut(bench, noopPackage(bench), [node]) // fetches the image
    await evaluate(start)
    const delays: (readonly [p99: number, max: number])[] = []
    const cpuMs: number[] = []
    for (let run = 0; run < bench.runs; run++) {
      await evaluate(reset)
      const before = await cpuOf(bench, node)
      await rollOut(bench, noopPackage(bench), [node])
      cpuMs.push((await cpuOf(bench, node)).cpuMs - before.cpuMs)
      delays.push((await evaluate(read)) as [number, number])
    }
    await evaluate(stop)
    await hostOf(bench.box, node).exec('rm', '-r', folder)
    return [
      medianFigure(
        'no-op package: delay of the event loop, 99th percentile',
        delays.map(([p99]) => p99),
        { target: 10 },
      ),
      medianFigure(
        'no-op package: delay of the event loop, longest',
        delays.map(([, max]) => max),
        { target: 100 },
      ),
      medianFigure('no-op package: CPU time of the container, until forgotten', cpuMs, { target: 500 }),
    ]
  },
}

/** Puts Node on the host, which has none, and opens the agent's debugger. */
async function debuggerOf({ box }: BenchContext, node: string): Promise<(expression: string) => Promise<unknown>> {
  const host = hostOf(box, node)
  const leader = (await box.must(['leader', node])).trim()
  const inside = `/proc/${leader}/root${folder}`
  await host.exec('mkdir', '-p', folder)
  copyFileSync(process.execPath, `${inside}/node`)
  const library = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/libatomic.so.1`
  copyFileSync(library, `${inside}/libatomic.so.1`)
  writeFileSync(`${inside}/client.mjs`, client)
  await host.exec('pkill', '-USR1', '-f', '^/usr/bin/node .*skyhookd.cjs agent$')
  await sleep(opensWithinMs)
  return async (expression) => {
    const command = [`${folder}/node`, `${folder}/client.mjs`, expression]
    return JSON.parse(await host.exec('env', `LD_LIBRARY_PATH=${folder}`, ...command)) as unknown
  }
}
