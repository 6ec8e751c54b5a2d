/**
 * One node of a measured fleet: its Node and its agent's pod on the real API server, a simulated host, and the whole
 * agent on it, with a token and TLS connections of its own. All on real time.
 */
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import type { Settings } from '../../src/daemon/settings/settings.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import { createKubeTransport, type KubeTransport } from '../../src/kube/transport.ts'
import type { JsonObject } from '../../src/schemas/json.ts'
import { startSimulatedAgent, type SimulatedAgent } from '../../test/kit/host/agent.ts'
import { followTruth } from '../../test/kit/host/host-truth.ts'
import { packageImage } from '../../test/kit/host/package-image.ts'
import { createSimulatedHost } from '../../test/kit/host/simulated-host.ts'
import { settingsOf } from '../../test/kit/objects/sample-settings.ts'
import { staticCredentials } from '../../test/kit/tool/static-credentials.ts'
import type { WorkerTask } from './messages.ts'
import { createNodeConduct } from './node-conduct.ts'
import { observedTransport } from './observed-transport.ts'
import { podOf, registerNode } from './register-node.ts'
import { aloneLabel, lastModeOf, poolLabel, service, stagesOf } from './plan.ts'

export type FleetNodeEvents = {
  watched(events: number, bytes: number): void
  completed(node: string, atMs: number): void
  wentOut(change: 1 | -1, atMs: number): void
  warned(message: string): void
}

export type FleetNode = Awaited<ReturnType<typeof createFleetNode>>

/** The chart's default; agents count themselves later. */
const estimatedNodeCount = 100
/** The node controller answers a cordon this fast (src/daemon/executors/publish.ts). */
const taintMs = 20

export const nodeNameOf = (index: number): string => `node-${String(index).padStart(4, '0')}`

/** Creates the Node and its agent's pod, and starts the agent; resolves once it is synced. */
export async function createFleetNode(
  index: number,
  { server, ca, namespace, plan }: WorkerTask,
  admin: KubeTransport,
  events: FleetNodeEvents,
) {
  const name = nodeNameOf(index)
  const path = `/api/v1/nodes/${name}`
  const stages = stagesOf(plan)
  const host = createSimulatedHost({
    name,
    clock: systemClock,
    seed: index + 1,
    registry: ({ repository, tag = '' }) => packageImage(repository, tag, stages),
    runStep: () => ({ durationMs: plan.stepMs }),
    fetchFate: () => ({ durationMs: 0 }),
  })
  host.systemd.addService(service, { restart: () => ({ durationMs: 0, result: 'done' }) })

  const lastMode = lastModeOf(plan)
  const truth = followTruth(host, ({ mode }) => mode === lastMode)
  let wasOut = false
  host.observe(() => {
    const isOut = truth.isOut()
    if (isOut !== wasOut) events.wentOut(isOut ? 1 : -1, Date.now())
    wasOut = isOut
  })

  const conduct = createNodeConduct(() => events.completed(name, Date.now()))
  /** As the node controller does. */
  const taint = (isUnschedulable: boolean): void => {
    const one = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }
    const body = { spec: { taints: [isUnschedulable ? one : { ...one, $patch: 'delete' }] } }
    systemClock.startTimer(taintMs, () => {
      admin
        .json('PATCH', path, { body, contentType: 'application/strategic-merge-patch+json' })
        .catch(() => events.warned('the taint of a cordon could not be written'))
    })
  }

  const labels = { [poolLabel]: 'all', ...(index === 0 && { [aloneLabel]: 'yes' }) }
  await registerNode(admin, { name, labels, bootID: host.bootId(), namespace, wallMs: Date.now() })
  const credentials = staticCredentials({ server, ca, token: await tokenOf(name, namespace, admin) })
  const settings: Settings = { ...settingsOf(name, '/'), namespace, estimatedNodeCount }

  let agent: SimulatedAgent
  async function start(): Promise<void> {
    const synced = Promise.withResolvers<void>()
    agent = startSimulatedAgent(host, {
      settings,
      connectApi: ({ clock, onRequest, isCensus }) => {
        const transport = createKubeTransport({ credentials, version: 'bench', clock, onRequest })
        if (isCensus) return transport
        return observedTransport(transport, path, {
          watched: (count, bytes) => events.watched(count, bytes),
          published: (annotations: JsonObject) => conduct.published(annotations, Date.now()),
          cordoned: taint,
          slotTaken: () => conduct.slotsChanged(1, Date.now()),
          slotReleased: () => conduct.slotsChanged(-1, Date.now()),
        })
      },
      onLog({ level, message, fields }) {
        if (message === 'synced') synced.resolve()
        if (level === 'warn' || level === 'error')
          events.warned(('error' in fields ? `${message}: ${String(fields.error)}` : message).replaceAll(/\d+/g, 'N'))
      },
    })
    agent.ended.catch((error: unknown) => events.warned(`an agent died: ${String(error)}`))
    await synced.promise
  }
  await start()

  return {
    conduct,
    /** Kills the agent and starts another one; resolves once that is synced. */
    async restart(): Promise<void> {
      agent.kill()
      await start()
    },
    stop: () => agent.kill(),
  }
}

async function tokenOf(name: string, namespace: string, admin: KubeTransport): Promise<string> {
  const spec = { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: podOf(name) } }
  type TokenRequest = KubeObject & { readonly status: { readonly token: string } }
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/skyhookd/token`
  return (await admin.json<TokenRequest>('POST', path, { body: { spec } })).status.token
}
