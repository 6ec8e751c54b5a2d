/** The data of a dashboard: a cluster by watches, a support archive as the one moment that it has. */
import { once } from 'node:events'
import { isTransient } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { type Clock, type Random, sleep, startInterval } from '../../schemas/clock.ts'
import { messageOf } from '../../schemas/json.ts'
import { hostFolderOf, textOf } from '../fleet/agent-log/step-texts.ts'
import { readable } from '../fleet/fleet-view/readable.ts'
import { notFoundError } from '../base/framework/command-error.ts'
import { getSkyhook } from '../fleet/objects/read.ts'
import { readCompletions, readRollouts } from '../reason/status/read-rollouts.ts'
import { type Freshness, watchFleet } from '../reason/status/watch-fleet.ts'
import { answerAbout, type NodePlace, skyhookNamed } from './node-answer.ts'
import type {
  Identity,
  DashboardSource,
  FleetMoment,
  NodeOfSkyhook,
  EditPlan,
  OutputLine,
  OutputPart,
  NodeAction,
} from './page-data.ts'
import { skyhookTypeMeta } from '../../schemas/api.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { yamlText } from '../base/framework/yaml-text.ts'
import { followSteps } from '../fleet/agent-log/node-log.ts'
import type { LogPorts } from '../fleet/agent-log/read-log.ts'
import type { PlanOptions } from '../reason/dry-run/plan-file.ts'

/** A square has to change within two seconds of the node. */
const drawIntervalMs = 500
/** A network that swallows everything shows itself only by a request that is not answered. */
const heartbeatIntervalMs = 2_000
const heartbeatTimeoutMs = 4_000
/** A watch that breaks and continues at once is not a loss. */
const minLossMs = 1_000
/** The pace is that of Events, which nothing watches. */
const completionsIntervalMs = 30_000

type FleetSourceOptions = {
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

/** A Skyhook as YAML to edit: without its status, and without what the API server keeps in it for itself. */
function manifestOf({ metadata, spec }: Pick<Skyhook, 'metadata' | 'spec'>): string {
  const labels = metadata.labels === undefined ? {} : { labels: metadata.labels }
  return yamlText({ ...skyhookTypeMeta, metadata: { name: metadata.name, ...labels }, spec })
}

/** Between two nodes of a plan: an answer to somebody else takes several turns of the event loop. */
const planRestMs = 5

type EditPlanOptions = Pick<PlanOptions, 'transport' | 'namespace' | 'clock' | 'signal'>

/** What an apply of a text would do. `of`: what `transport` is. @throws CommandError for what cannot be planned */
async function planEdit(text: string, options: EditPlanOptions, of: 'cluster' | 'archive'): Promise<EditPlan> {
  const { clock, signal } = options
  // loaded at its first use: it knows the rules of the resource definitions
  const [{ readManifests }, planFile, { filePlanText }] = await Promise.all([
    import('../reason/dry-run/manifests.ts'),
    of === 'cluster'
      ? import('../reason/dry-run/plan-file.ts').then((module) => module.planFile)
      : import('../reason/dry-run/plan-file.ts').then((module) => module.planArchivedFile),
    import('../reason/dry-run/file-plan-output.ts'),
  ])
  const found = await planFile(readManifests(text, 'the text'), {
    ...options,
    isDelete: false,
    checkEvictions: false,
    betweenNodes: () => sleep(clock, planRestMs, signal),
  })
  return { isRefused: found.isRefused, disrupts: found.disrupts, text: filePlanText(found, 'text') }
}

/** Lines are sent together. */
const sendIntervalMs = 250

/** Follows the logs of the node's agents until the signal of the ports aborts. Throws what the API server answers. */
async function followStepOutput(
  ports: LogPorts,
  { skyhook, node }: NodeOfSkyhook,
  onPart: (part: OutputPart) => void,
): Promise<void> {
  let pending: OutputLine[] = []
  const flush = (): void => {
    if (pending.length > 0) onPart({ lines: pending })
    pending = []
  }
  const cancel = startInterval(ports.clock, sendIntervalMs, flush)
  try {
    await followSteps(
      { ports, node, selection: { skyhook }, folder: hostFolderOf({ skyhook }) },
      ({ line }) => {
        const { of, atMs } = line
        const time = Number.isNaN(atMs) ? {} : { atMs }
        pending.push({ ...time, package: of.package, stage: of.mode, text: textOf(line) })
      },
      (note) => onPart({ note }),
    )
  } finally {
    cancel()
    flush()
  }
}

/**
 * The command for the cluster that the page shows: a shell's current context may be another one. `undefined` context:
 * there is no kubeconfig, and nothing is added.
 */
export function inContext(command: string, context: string | undefined): string {
  if (context === undefined) return command
  return command
    .split(' && ')
    .map((part) => {
      if (!part.startsWith('kubectl ')) return part
      const [, call = part, rest = ''] = /^(.*?)( \| .*| # .*)?$/.exec(part) ?? []
      return `${call} --context ${quoted(context)}${rest}`
    })
    .join(' && ')
}

/** What a person may want to do with a node of a Skyhook. */
export const nodeActions = (skyhook: string, node: string): readonly NodeAction[] => [
  { what: 'Explain it in a terminal', command: `kubectl skyhook explain ${quoted(skyhook)} ${quoted(node)}` },
  ...changesOf(skyhook, node),
]

/** The same for a support archive: reading needs no cluster, and what the archive does not have is on the cluster. */
const archivedNodeActions = (skyhook: string, node: string, file: string): readonly NodeAction[] => [
  {
    what: 'Explain it in a terminal, from the archive',
    command: `kubectl skyhook explain ${quoted(skyhook)} ${quoted(node)} --from ${quoted(file)}`,
  },
  { what: 'Explain it as it is now', command: `kubectl skyhook explain ${quoted(skyhook)} ${quoted(node)}` },
  { what: 'Output of its steps', command: logsCommand(skyhook, node) },
  ...changesOf(skyhook, node),
]

const logsCommand = (skyhook: string, node: string): string =>
  `kubectl skyhook logs ${quoted(skyhook)} --node ${quoted(node)}`

const changesOf = (skyhook: string, node: string): readonly NodeAction[] => [
  { what: 'Keep the node out of rollouts', command: `kubectl skyhook node ignore ${quoted(node)}` },
  { what: 'Let the node take part again', command: `kubectl skyhook node unignore ${quoted(node)}` },
  {
    what: 'Run everything on the node again',
    command: `kubectl skyhook node reset ${quoted(node)} --skyhook ${quoted(skyhook)}`,
  },
  { what: 'Pause the Skyhook everywhere', command: `kubectl skyhook pause ${quoted(skyhook)}` },
  { what: 'Resume the Skyhook', command: `kubectl skyhook resume ${quoted(skyhook)}` },
]

/** As a POSIX shell takes it for one word. */
const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
