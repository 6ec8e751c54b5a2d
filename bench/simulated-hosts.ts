/**
 * CPU that a whole life of a simulated host takes, agent and API server included: install, configuration, a service
 * restart, a reboot: `node bench/simulated-hosts.ts [lives]`.
 */
import { packageSpec, startSampleLife } from '../test/fleet/host/sample-life.ts'

const lives = Number(process.argv[2] ?? 50)
const warmUpLives = 10

async function live(seed: number): Promise<{ readonly virtualMs: number; readonly events: number }> {
  const life = await startSampleLife({ seed })
  life.host.systemd.addService('web.service', { restart: () => ({ durationMs: 400, result: 'done' }) })
  await life.apply({
    tuned: packageSpec('tuned', { type: 'service', services: ['web'] }),
    kernel: packageSpec('kernel', { type: 'reboot' }),
  })
  const virtualMs = await life.until(() => life.status() === 'complete' && life.host.power() === 'up')
  return { virtualMs, events: life.events.length }
}

for (let seed = 1; seed <= warmUpLives; seed++) await live(seed)
const before = process.cpuUsage()
let virtualMs = 0
let events = 0
for (let seed = 1; seed <= lives; seed++) {
  const lived = await live(seed)
  virtualMs += lived.virtualMs
  events += lived.events
}
const { user, system } = process.cpuUsage(before)
const cpuMs = (user + system) / 1_000
console.log(
  [
    `${lives} lives`,
    `${(cpuMs / lives).toFixed(1)} ms of CPU`,
    `${(virtualMs / lives / 1_000).toFixed(1)} virtual seconds`,
    `${Math.round(events / lives)} events of the host each`,
  ].join(', '),
)
