/** A cluster as the data of a dashboard: watches, and requests for what a click asks. */
import { stringify } from 'yaml'
import { isNotFound, isTransient } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { skyhookTypeMeta } from '../../schemas/api.ts'
import { type Clock, type Random, sleep } from '../../schemas/clock.ts'
import { messageOf } from '../../schemas/json.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { known, type Known } from '../../stages/model/snapshot.ts'
import { podsPathIn } from '../agent-log/agent-pods.ts'
import { hostFolderOf } from '../agent-log/step-texts.ts'
import { explainNode } from '../explain/explain-node.ts'
import type { FleetView } from '../fleet-view/fleet-view.ts'
import { readNodeDetail } from '../fleet-view/node-detail.ts'
import { slimNode } from '../fleet-view/project.ts'
import { readable } from '../fleet-view/readable.ts'
import { readFleet } from '../fleet-view/read-fleet.ts'
import { notFoundError, refusedError } from '../framework/command-error.ts'
import { nodePath, publishedPackages } from '../objects/nodes.ts'
import { getSkyhook } from '../objects/skyhooks.ts'
import type { Completion } from '../status/fleet-status.ts'
import { createNodeReader, type NodeRow } from '../status/node-report.ts'
import { readCompletions } from '../status/read-completions.ts'
import { type Freshness, watchFleet } from '../status/watch-fleet.ts'
import { inContext, nodeActions } from './commands.ts'
import type { Identity, NodeAnswer } from './page-data.ts'
import type { DashboardSource, FleetMoment, NodeOfSkyhook } from './source.ts'
import { followStepOutput } from './step-output.ts'

/** A square has to change within two seconds of the node. */
const drawIntervalMs = 500
/** A network that swallows everything shows itself only by a request that is not answered. */
const heartbeatIntervalMs = 2_000
const heartbeatTimeoutMs = 4_000
/** A watch that breaks and continues at once is no loss. */
const minLossMs = 1_000
/** Between two nodes of a plan: an answer to somebody else takes several turns of the event loop. */
const planRestMs = 5
/** The pace is that of Events, which nothing watches. */
const completionsIntervalMs = 30_000

export type LiveSourceOptions = {
  readonly transport: KubeTransport
  readonly clock: Clock
  readonly random: Random
  readonly identity: Identity
  readonly signal: AbortSignal
}

/** Reads the fleet once. Throws for an API server that does not answer. */
export async function openLiveSource(options: LiveSourceOptions): Promise<DashboardSource> {
  const { transport, clock, random, identity } = options
  const { namespace } = identity
  const [first, firstCompletions] = await Promise.all([
    readFleet(transport, {
      namespace,
      clock,
      signal: options.signal,
      nodeOf: createNodeReader(),
      isMetadataEnough: true,
    }),
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
    const show = (): void =>
      onMoment({ fleet: { ...fleet, takenAtMs: clock.wallMs() }, completions, freshness: freshness(), contactAtMs })
    const draw = (view: FleetView<NodeRow>, found: Freshness): void => {
      fleet = view
      watched = found
      if (found.state === 'live' && unanswered === undefined) contactAtMs = clock.wallMs()
      show()
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
        show()
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
      watchFleet({ transport, clock, random, signal, first, draw, drawIntervalMs }),
      beat(),
      measure(),
    ])
  }

  async function explain({ skyhook: name, node: nodeName }: NodeOfSkyhook, signal: AbortSignal): Promise<NodeAnswer> {
    const skyhook = foundIn(fleet.skyhooks, name)
    const [node, detail] = await Promise.all([
      getNode(transport, nodeName, signal),
      readNodeDetail(transport, nodeName, signal),
    ])
    const view = { ...fleet, takenAtMs: clock.wallMs(), nodes: namesOnly(fleet.nodes, node) }
    const explanation = explainNode(view, { skyhook, node, detail })
    const packages = [...(publishedPackages(node, name)?.values() ?? [])]
    return {
      nowMs: view.takenAtMs,
      explanation: withCommands(explanation, identity.context),
      packages: packages.map(({ name, version, stage, state, restarts }) => ({
        name,
        version,
        stage,
        state,
        restarts,
      })),
      actions: nodeActions(name, nodeName).map(({ what, command }) => ({
        what,
        command: inContext(command, identity.context),
      })),
    }
  }

  return {
    identity,
    follow,
    explain,
    async followOutput(of, listener, signal) {
      const output = followStepOutput({ transport, podsPath: podsPathIn(namespace), clock, signal }, of, listener)
      const found = await readable(`logs of Pods in namespace ${namespace}`, output)
      if (!found.known) listener.onNote(`${found.why}; output is on the host, in ${hostFolderOf(of)}`)
    },
    async manifest(name, signal) {
      const { metadata, spec } = await getSkyhook(transport, name, signal)
      const labels = metadata.labels === undefined ? {} : { labels: metadata.labels }
      return stringify({ ...skyhookTypeMeta, metadata: { name: metadata.name, ...labels }, spec }, { lineWidth: 0 })
    },
    async plan(text, signal) {
      // loaded at its first use: it knows the rules of the resource definitions
      const [{ readManifests }, { planFile }, { filePlanText }] = await Promise.all([
        import('../dry-run/manifests.ts'),
        import('../dry-run/plan-file.ts'),
        import('../dry-run/file-plan-output.ts'),
      ])
      const manifests = readManifests(text, 'the text')
      const found = await planFile(manifests, {
        transport,
        namespace,
        clock,
        signal,
        isDelete: false,
        checkEvictions: false,
        betweenNodes: () => sleep(clock, planRestMs, signal),
      })
      return { isRefused: found.isRefused, disrupts: found.disrupts, text: filePlanText(found, 'text') }
    },
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

function foundIn(skyhooks: Known<readonly Skyhook[]>, name: string): Skyhook {
  if (!skyhooks.known) throw refusedError(skyhooks.why)
  const found = skyhooks.value.find(({ metadata }) => metadata.name === name)
  if (found === undefined) throw notFoundError(`there is no Skyhook ${name}`, 'kubectl get skyhooks')
  return found
}

async function getNode(transport: KubeTransport, name: string, signal: AbortSignal): Promise<KubernetesNode> {
  try {
    return slimNode(await transport.json<KubernetesNode>('GET', nodePath(name), { signal }))
  } catch (error) {
    if (isNotFound(error)) throw notFoundError(`there is no Node ${name}`, 'kubectl get nodes')
    throw error
  }
}

/** A decision about one node needs of the others only that they are there. */
const namesOnly = (rows: Known<readonly NodeRow[]>, node: KubernetesNode): Known<readonly KubernetesNode[]> =>
  rows.known
    ? known([
        node,
        ...rows.value
          .filter(({ name }) => name !== node.metadata.name)
          .map(({ name }) => ({ metadata: { name, uid: '', resourceVersion: '' } })),
      ])
    : rows

function withCommands(explanation: NodeAnswer['explanation'], context: string | undefined): NodeAnswer['explanation'] {
  const here = <F extends { readonly command: string }>(finding: F): F => ({
    ...finding,
    command: inContext(finding.command, context),
  })
  return {
    ...explanation,
    verdict: explanation.verdict && here(explanation.verdict),
    gates: explanation.gates.map((gate) => ({ ...gate, findings: gate.findings.map(here) })),
  }
}
