/** The data of a dashboard: a cluster by watches, a support archive as the one moment that it has. */
import { once } from 'node:events'
import { isTransient } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { type Clock, type Random, sleep } from '../../schemas/clock.ts'
import { messageOf } from '../../schemas/json.ts'
import { hostFolderOf } from '../agent-log/step-texts.ts'
import { readable } from '../fleet-view/readable.ts'
import { notFoundError } from '../framework/command-error.ts'
import { getSkyhook } from '../objects/skyhooks.ts'
import { readCompletions } from '../status/read-completions.ts'
import { readRollouts } from '../status/read-rollouts.ts'
import { type Freshness, watchFleet } from '../status/watch-fleet.ts'
import { archivedNodeActions, inContext, logsCommand, nodeActions } from './commands.ts'
import { planEdit } from './edit-plan.ts'
import { manifestOf } from './manifest.ts'
import { answerAbout, type NodePlace, skyhookNamed } from './node-answer.ts'
import type { Identity } from './page-data.ts'
import type { DashboardSource, FleetMoment, NodeOfSkyhook } from './source.ts'
import { followStepOutput } from './step-output.ts'

/** A square has to change within two seconds of the node. */
const drawIntervalMs = 500
/** A network that swallows everything shows itself only by a request that is not answered. */
const heartbeatIntervalMs = 2_000
const heartbeatTimeoutMs = 4_000
/** A watch that breaks and continues at once is not a loss. */
const minLossMs = 1_000
/** The pace is that of Events, which nothing watches. */
const completionsIntervalMs = 30_000

export type FleetSourceOptions = {
  /** Of an archive, in place of an API server: none is asked, now and later. */
  readonly transport: KubeTransport
  /** Of an archive: its wall clock stands at the time at which the archive was made. */
  readonly clock: Clock
  readonly random: Random
  readonly identity: Identity
  readonly signal: AbortSignal
}

/** Reads the fleet once. Throws for an API server that does not answer. */
export async function openFleetSource(options: FleetSourceOptions): Promise<DashboardSource> {
  const { transport, clock, identity, signal } = options
  const { namespace } = identity
  const [fleet, completions] = await Promise.all([
    readRollouts(transport, { namespace, clock, signal }),
    readCompletions(transport, signal),
  ])
  let latest: FleetMoment = { fleet, completions, freshness: { state: 'live' }, contactAtMs: fleet.takenAtMs }
  return {
    identity,
    async follow(onMoment, until) {
      if (identity.isLive)
        return await followCluster(latest, { ...options, signal: until }, (moment) => onMoment((latest = moment)))
      onMoment(latest)
      if (!until.aborted) await once(until, 'abort')
      throw until.reason
    },
    explain: async (of, asked) =>
      await answerAbout(of, { ...latest.fleet, takenAtMs: clock.wallMs() }, placeOf(of, identity, transport), asked),
    async followOutput(of, onPart, asked) {
      if (!identity.isLive) return onPart({ note: archivedOutputText(of) })
      const output = followStepOutput({ transport, namespace, clock, signal: asked }, of, onPart)
      const found = await readable(`logs of Pods in namespace ${namespace}`, output)
      if (!found.known) onPart({ note: `${found.why}; output is on the host, in ${hostFolderOf(of)}` })
    },
    manifest: async (name, asked) =>
      manifestOf(
        identity.isLive ? await getSkyhook(transport, name, asked) : skyhookNamed(latest.fleet.skyhooks, name),
      ),
    plan: async (text, asked) =>
      await planEdit(text, { transport, namespace, clock, signal: asked }, identity.isLive ? 'cluster' : 'archive'),
  }
}

const placeOf = ({ skyhook, node }: NodeOfSkyhook, identity: Identity, transport: KubeTransport): NodePlace =>
  identity.isLive
    ? {
        transport,
        actions: nodeActions(skyhook, node),
        here: (command) => inContext(command, identity.context),
        noNode: () => notFoundError(`there is no Node ${node}`, 'kubectl get nodes'),
      }
    : {
        transport,
        actions: archivedNodeActions(skyhook, node, identity.file),
        here: (command) => command,
        noNode: () => notFoundError(`the archive has no Node ${node}`),
      }

const archivedOutputText = ({ skyhook, node }: NodeOfSkyhook): string =>
  `A support archive has no output of steps. In the cluster: ${logsCommand(skyhook, node)}; on the host: ` +
  hostFolderOf({ skyhook })

/** Calls back with what has changed and how old it is, at most once in each `drawIntervalMs` after the first. */
async function followCluster(
  first: FleetMoment,
  { transport, clock, random, signal }: FleetSourceOptions,
  onMoment: (moment: FleetMoment) => void,
): Promise<never> {
  let { completions, contactAtMs } = first
  let unanswered: Extract<Freshness, { state: 'lost' }> | undefined
  let isBeat = false
  async function beat(): Promise<never> {
    for (;;) {
      await sleep(clock, heartbeatIntervalMs, signal)
      const startedAtMs = clock.wallMs()
      const error = await unansweredBy(transport, signal)
      if (error === undefined) {
        contactAtMs = clock.wallMs()
        unanswered = undefined
      } else unanswered = { state: 'lost', sinceMs: unanswered?.sinceMs ?? startedAtMs, why: messageOf(error) }
      isBeat = true
    }
  }
  async function measure(): Promise<never> {
    for (;;) {
      await sleep(clock, completionsIntervalMs, signal)
      // what cannot be read now stays as it was
      completions = await readCompletions(transport, signal).catch(() => completions)
    }
  }
  const watching = watchFleet({
    transport,
    clock,
    random,
    signal,
    first: first.fleet,
    drawIntervalMs,
    isDue: () => isBeat,
    draw(view, watched) {
      isBeat = false
      const takenAtMs = clock.wallMs()
      if (watched.state === 'live' && unanswered === undefined) contactAtMs = takenAtMs
      const loss = [watched, unanswered].find((one) => one?.state === 'lost' && takenAtMs - one.sinceMs >= minLossMs)
      onMoment({ fleet: { ...view, takenAtMs }, completions, freshness: loss ?? { state: 'live' }, contactAtMs })
    },
  })
  return await Promise.race([watching, beat(), measure()])
}

/** The error of a server that does not answer; a refusal is an answer. */
async function unansweredBy(transport: KubeTransport, signal: AbortSignal): Promise<unknown> {
  try {
    await transport.json('GET', '/version', { signal, timeoutMs: heartbeatTimeoutMs })
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    return isTransient(error) ? error : undefined
  }
}
