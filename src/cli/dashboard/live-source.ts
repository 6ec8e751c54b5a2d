/** A cluster as the data of a dashboard: watches, and requests for what a click asks. */
import { isTransient } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { type Clock, type Random, sleep } from '../../schemas/clock.ts'
import { messageOf } from '../../schemas/json.ts'
import { hostFolderOf } from '../agent-log/step-texts.ts'
import type { FleetView } from '../fleet-view/fleet-view.ts'
import { readable } from '../fleet-view/readable.ts'
import { notFoundError } from '../framework/command-error.ts'
import { getSkyhook } from '../objects/skyhooks.ts'
import type { Completion } from '../status/fleet-status.ts'
import type { NodeRow } from '../status/node-report.ts'
import { readCompletions } from '../status/read-completions.ts'
import { readRollouts } from '../status/read-rollouts.ts'
import { type Freshness, watchFleet } from '../status/watch-fleet.ts'
import { inContext, nodeActions } from './commands.ts'
import { planEdit } from './edit-plan.ts'
import { manifestOf } from './manifest.ts'
import { answerAbout } from './node-answer.ts'
import type { ClusterIdentity, NodeAnswer } from './page-data.ts'
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

export type LiveSourceOptions = {
  readonly transport: KubeTransport
  readonly clock: Clock
  readonly random: Random
  readonly identity: ClusterIdentity
  readonly signal: AbortSignal
}

/** Reads the fleet once. Throws for an API server that does not answer. */
export async function openLiveSource(options: LiveSourceOptions): Promise<DashboardSource> {
  const { transport, clock, random, identity } = options
  const { namespace } = identity
  const [first, firstCompletions] = await Promise.all([
    readRollouts(transport, { namespace, clock, signal: options.signal }),
    readCompletions(transport, options.signal),
  ])
  let fleet: FleetView<NodeRow> = first
  let completions: readonly Completion[] = firstCompletions
  let watched: Freshness = { state: 'live' }
  let unanswered: Extract<Freshness, { state: 'lost' }> | undefined
  let contactAtMs = first.takenAtMs

  const freshness = (): Freshness => {
    const nowMs = clock.wallMs()
    const losses = [watched, unanswered].flatMap((one) => (one?.state === 'lost' ? [one] : []))
    return losses.find(({ sinceMs }) => nowMs - sinceMs >= minLossMs) ?? { state: 'live' }
  }

  async function follow(onMoment: (moment: FleetMoment) => void, signal: AbortSignal): Promise<never> {
    let isBeat = false
    const isDue = (): boolean => isBeat
    const draw = (view: FleetView<NodeRow>, found: Freshness): void => {
      isBeat = false
      fleet = view
      watched = found
      if (found.state === 'live' && unanswered === undefined) contactAtMs = clock.wallMs()
      onMoment({ fleet: { ...fleet, takenAtMs: clock.wallMs() }, completions, freshness: freshness(), contactAtMs })
    }
    const beat = async (): Promise<never> => {
      for (;;) {
        await sleep(clock, heartbeatIntervalMs, signal)
        const startedAtMs = clock.wallMs()
        const error = await unansweredBy(transport, signal)
        if (error === undefined) contactAtMs = clock.wallMs()
        unanswered =
          error === undefined
            ? undefined
            : { state: 'lost', sinceMs: unanswered?.sinceMs ?? startedAtMs, why: messageOf(error) }
        isBeat = true
      }
    }
    const measure = async (): Promise<never> => {
      for (;;) {
        await sleep(clock, completionsIntervalMs, signal)
        // what cannot be read now stays as it was
        completions = await readCompletions(transport, signal).catch(() => completions)
      }
    }
    return await Promise.race([
      watchFleet({ transport, clock, random, signal, first, draw, drawIntervalMs, isDue }),
      beat(),
      measure(),
    ])
  }

  const explain = async (of: NodeOfSkyhook, signal: AbortSignal): Promise<NodeAnswer> =>
    await answerAbout(
      of,
      { ...fleet, takenAtMs: clock.wallMs() },
      {
        transport,
        actions: nodeActions(of.skyhook, of.node),
        here: (command) => inContext(command, identity.context),
        noNode: () => notFoundError(`there is no Node ${of.node}`, 'kubectl get nodes'),
      },
      signal,
    )

  return {
    identity,
    follow,
    explain,
    async followOutput(of, onPart, signal) {
      const output = followStepOutput({ transport, namespace, clock, signal }, of, onPart)
      const found = await readable(`logs of Pods in namespace ${namespace}`, output)
      if (!found.known) onPart({ note: `${found.why}; output is on the host, in ${hostFolderOf(of)}` })
    },
    async manifest(name, signal) {
      return manifestOf(await getSkyhook(transport, name, signal))
    },
    plan: async (text, signal) => await planEdit(text, { transport, namespace, clock, signal }, 'cluster'),
  }
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
