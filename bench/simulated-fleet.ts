/**
 * CPU that ten virtual minutes of a simulated fleet take: three hosts with agents and census, one API server, two
 * Skyhooks (one restarts a service and reboots), a killed agent, a power cut, a cut network and edits:
 * `node bench/simulated-fleet.ts [runs] [hosts]`. The digest is of all requests, so that a faster simulator can show
 * that it does what it did.
 */
import { createHash } from 'node:crypto'
import { skyhookTypeMeta } from '../src/schemas/api.ts'
import { createClient, type SimClient } from '../test/kit/api-server/client.ts'
import { startDisruptionController } from '../test/kit/api-server/disruption-controller.ts'
import { startGarbageCollector } from '../test/kit/api-server/garbage-collector.ts'
import { createSimulatedApiServer } from '../test/kit/api-server/server.ts'
import { type SimulatedAgent, startSimulatedAgent } from '../test/kit/host/agent.ts'
import { startKubelet } from '../test/kit/host/kubelet.ts'
import { packageImage } from '../test/kit/host/package-image.ts'
import { packageSpec } from '../test/kit/host/sample-life.ts'
import { createSimulatedHost } from '../test/kit/host/simulated-host.ts'
import { settingsOf } from '../test/kit/objects/sample-settings.ts'
import { createSeededRandom, createVirtualClock } from '../test/kit/virtual-clock.ts'

const runs = Number(process.argv[2] ?? 20)
const hostCount = Number(process.argv[3] ?? 3)
const warmUpRuns = 3
const mergePatch = 'application/merge-patch+json'
const skyhooksPath = `/apis/${skyhookTypeMeta.apiVersion}/skyhooks`

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

async function run(seed: number) {
  const clock = createVirtualClock(1_700_000_000_000, { settleTurns: 1 })
  const server = createSimulatedApiServer({ clock, random: createSeededRandom(seed) })
  const history = createHash('sha256')
  let requests = 0
  server.observe({
    answered({ client, verb, resource, name, code }) {
      requests++
      history.update(`${clock.monotonicMs().toFixed(3)} ${client} ${verb} ${resource} ${name} ${code}\n`)
    },
  })
  startGarbageCollector(server, { clock, random: createSeededRandom(seed) })
  startDisruptionController(server, { clock })
  let clients = 0
  const connect = (name: string): SimClient =>
    createClient(server, {
      name,
      clock,
      random: createSeededRandom(seed * 1_000 + ++clients),
      latencyMs: (random) => 1 + 4 * random.number(),
    })
  const admin = createClient(server, { name: 'admin', clock, random: createSeededRandom(seed) })
  await admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: 'skyhook' } } })

  const hosts = Array.from({ length: hostCount }, (_, index) => {
    const name = `n${index + 1}`
    const host = createSimulatedHost({
      name,
      clock,
      seed: seed * 100 + index,
      registry: ({ repository, tag = '' }) => packageImage(repository, tag),
      runStep: () => ({ durationMs: 1_000 }),
    })
    host.systemd.addService('web.service', { restart: () => ({ durationMs: 400, result: 'done' }) })
    startKubelet(host, { clock, transport: connect(`kubelet:${name}`), nodeName: name, labels: { pool: 'x' } })
    let agent: SimulatedAgent | undefined
    let client: SimClient | undefined
    const keepRunning = (): void => {
      if (host.power() === 'up' && agent?.process.isAlive() !== true) {
        agent = startSimulatedAgent(host, {
          settings: settingsOf(name, '/'),
          connectApi: ({ isCensus }) => {
            const connected = connect(isCensus ? `census:${name}` : `agent:${name}`)
            if (!isCensus) client = connected
            return connected
          },
        })
      }
      clock.startTimer(2_000, keepRunning)
    }
    keepRunning()
    return { host, agent: () => agent, client: () => client }
  })

  const create = async (name: string, packages: object, priority: number): Promise<void> => {
    const spec = {
      nodeSelectors: { matchLabels: { pool: 'x' } },
      interruptionBudget: { count: 1 },
      priority,
      packages,
    }
    await admin.json('POST', skyhooksPath, { body: { ...skyhookTypeMeta, metadata: { name }, spec } })
  }
  const edit = async (name: string, spec: object): Promise<unknown> =>
    await admin.json('PATCH', `${skyhooksPath}/${name}`, { contentType: mergePatch, body: { spec } })

  await clock.advance(10_000)
  const web = { type: 'service', services: ['web'] } as const
  await create('plain', { tuned: packageSpec('tuned') }, 1)
  await create('reboots', { web: packageSpec('web', web), kernel: packageSpec('kernel', { type: 'reboot' }) }, 2)
  const [first, second, third] = hosts
  await clock.advance(15_000)
  first?.agent()?.kill()
  await clock.advance(25_000)
  second?.host.cutPower()
  await clock.advance(60_000)
  third?.client()?.cut()
  await edit('plain', { packages: { tuned: packageSpec('tuned', undefined, '1.1.0') } })
  await clock.advance(60_000)
  third?.client()?.heal('reset')
  await edit('reboots', { interruptionBudget: { count: 2 } })
  await clock.advance(600_000 - clock.monotonicMs())

  const states = server
    .objects('nodes')
    .flatMap(({ metadata: { annotations = {} } }) =>
      Object.entries(annotations as Record<string, string>).filter(([key]) => key.includes('/status_')),
    )
  if (states.length !== 2 * hostCount || states.some(([, status]) => status !== 'complete'))
    throw new Error(`seed ${seed} is not complete: ${JSON.stringify(states)}`)
  for (const { host } of hosts) for (const process of host.processes()) process.kill()
  return { requests, digest: history.digest('hex').slice(0, 12) }
}

for (let seed = 1; seed <= warmUpRuns; seed++) await run(seed)
const startMs = cpuMs()
const results = []
for (let seed = 1; seed <= runs; seed++) results.push(await run(seed))
const meanMs = (cpuMs() - startMs) / runs
const requests = results.reduce((sum, one) => sum + one.requests, 0) / runs
const digest = createHash('sha256')
  .update(results.map((one) => one.digest).join())
  .digest('hex')
  .slice(0, 12)
console.log(
  [
    `${runs} runs of ${hostCount} hosts`,
    `${meanMs.toFixed(1)} ms of CPU and ${Math.round(requests)} requests each`,
    `history ${digest}`,
  ].join(', '),
)
