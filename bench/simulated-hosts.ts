/**
 * CPU that ten virtual minutes of a simulated host take, agent, census and API server included: install, configuration,
 * a service restart and a reboot at the beginning, then nothing: `node bench/simulated-hosts.ts [lives]`.
 */
import { packageSpec, startSampleLife } from '../test/kit/host/sample-life.ts'

const lives = Number(process.argv[2] ?? 50)
const warmUpLives = 10

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

let [workMs, idleMs, virtualMs, events] = [0, 0, 0, 0]

async function live(seed: number): Promise<void> {
  const startMs = cpuMs()
  const life = await startSampleLife({ seed })
  life.host.systemd.addService('web.service', { restart: () => ({ durationMs: 400, result: 'done' }) })
  await life.apply({
    tuned: packageSpec('tuned', { type: 'service', services: ['web'] }),
    kernel: packageSpec('kernel', { type: 'reboot' }),
  })
  virtualMs += await life.until(() => life.status() === 'complete' && life.host.power() === 'up')
  const completeMs = cpuMs()
  await life.clock.advance(600_000 - life.clock.monotonicMs())
  workMs += completeMs - startMs
  idleMs += cpuMs() - completeMs
  events += life.events.length
}

for (let seed = 1; seed <= warmUpLives; seed++) await live(seed)
workMs = idleMs = virtualMs = events = 0
for (let seed = 1; seed <= lives; seed++) await live(seed)
console.log(
  [
    `${lives} lives`,
    `${(workMs / lives).toFixed(1)} ms of CPU for ${(virtualMs / lives / 1_000).toFixed(1)} virtual seconds of work`,
    `${(idleMs / lives).toFixed(1)} ms for the rest of ten minutes`,
    `${Math.round(events / lives)} events of the host each`,
  ].join(', '),
)
