/**
 * The snapshot that a node's agent would decide on, rebuilt from what the API shows. What only the host knows comes
 * from what the agent published; otherwise it is assumed to be healthy.
 */
import { emptyJournal, type Journal } from '../../../schemas/journal.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { type Mode, type PackageConfig, stagesWithSteps, type Step } from '../../../schemas/package-config.ts'
import { publishedOf } from '../../../schemas/published.ts'
import { selects } from '../../../schemas/selectors.ts'
import { isPastWork, type PackageSpec, type Skyhook } from '../../../schemas/skyhook.ts'
import { disruptionOf, hasMark } from '../../../stages/drain/drain.ts'
import { preparationKey } from '../../../stages/model/plan.ts'
import {
  type AttemptObservation,
  type Failure,
  known,
  type Known,
  type OwnSlot,
  type Preparation,
  type SkyhookView,
  type SlotDenial,
  type Snapshot,
} from '../../../stages/model/snapshot.ts'
import { pauseReason } from '../../../stages/skyhook/gates.ts'
import { otherOperatorIn } from '../../../stages/skyhook/other-operator.ts'
import { membershipOf, slotOfSkyhook } from '../../../stages/skyhook/slot.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import type { NodeDetail } from '../../fleet/fleet-view/node-detail.ts'
import { valueOr } from '../../fleet/fleet-view/readable.ts'
import { defaultSettings, knownBudget } from '../../fleet/fleet-view/settings.ts'
import { skyhookViewOf } from '../../fleet/fleet-view/skyhook-view.ts'
import { expectedEvictions } from './drain-finding.ts'
import { type Evidence, evidenceOf, hostErrorOf, hostFaults, rebootBarrierOf, withoutPackage } from './evidence.ts'
import { type PublishedRecord, publishedRecord, type WorkFacts } from './published-record.ts'
import { ownSlotsOf, slotAnswer, type Leased, type SlotAnswer } from './slot-view.ts'

export type NodeView = {
  readonly snapshot: Snapshot
  readonly views: readonly SkyhookView[]
  /** By name of the Skyhook. */
  readonly records: ReadonlyMap<string, PublishedRecord>
  readonly evidence: ReadonlyMap<string, readonly Evidence[]>
  /** The answer to a request for a slot; unknown if Leases may not be read. */
  readonly slotAnswers: ReadonlyMap<string, Known<SlotAnswer>>
}

/**
 * If Skyhooks share a package, the last Skyhook's message about it wins. `edited`: Skyhooks as an edit would leave
 * them; the node may already have their specs.
 */
export function nodeView(
  fleet: FleetView<KubernetesNode>,
  skyhooks: readonly Skyhook[],
  node: KubernetesNode,
  detail: NodeDetail,
  edited: readonly Skyhook[] = [],
): NodeView {
  const nowMs = fleet.takenAtMs
  const views = skyhooks.map((skyhook) => viewOf(fleet, skyhook, node))
  const leased: Known<Leased> = !fleet.slots.known
    ? fleet.slots
    : fleet.ledgers.known
      ? known({ slots: fleet.slots.value, ledgers: fleet.ledgers.value })
      : fleet.ledgers
  const slots: Known<readonly OwnSlot[]> = leased.known ? known(ownSlotsOf(node, views, leased.value)) : leased
  const evidence = new Map(
    skyhooks.map(({ metadata: { name } }) => [
      name,
      evidenceOf({ node, skyhook: name, events: detail.events, takenAtMs: nowMs }),
    ]),
  )
  const settings = valueOr(fleet.settings, defaultSettings)
  const pods = detail.pods.known ? known({ pods: detail.pods.value, since: 'cordoned' as const }) : detail.pods
  const host = hostOf(node, [...evidence.values()].flat())
  const bare: Snapshot = {
    nowMs,
    wallOffsetMs: 0,
    bootId: node.status?.nodeInfo?.bootID ?? '',
    rebootBarrier: rebootBarrierOf(node),
    node,
    skyhooks: known(views),
    journal: emptyJournal(node.metadata.uid),
    attempts: new Map(),
    preparations: new Map(),
    slots,
    slotDenials: new Map(),
    distantSkyhooks: new Set(),
    pods,
    nodeCount: fleet.nodes.known ? { isSingle: fleet.nodes.value.length === 1, atMs: Infinity } : undefined,
    evictions: detail.pods.known ? expectedEvictions(detail.pods.value, valueOr(detail.budgets, []), nowMs) : new Map(),
    evictedOwners: new Map(),
    interrupts: new Map([['published', { state: 'running' }]]),
    hostFolders: new Set(),
    otherOperator: otherOperatorIn(takeoverMessages(node, views)),
    rolledOutConfigs: new Map(),
    statuses: known(new Map()),
    requestedStatuses: new Map(),
    cleanUps: new Map(),
    failures: new Map(),
    host,
    settings,
  }
  const records = new Map(
    views.map((view) => {
      const { name } = view.metadata
      return [
        name,
        recordFor(
          bare,
          view,
          evidence,
          edited.find(({ metadata }) => metadata.name === name),
        ),
      ]
    }),
  )
  const hasStarted = ({ metadata }: SkyhookView): boolean => records.get(metadata.name)?.record?.lifecycle !== undefined
  const waiting = views.filter((view) => !hasStarted(view))
  const slotAnswers = new Map(
    views.map(
      (view) => [view.metadata.name, answerFor(bare, view, leased, knownBudget(view.spec, fleet.settings))] as const,
    ),
  )
  const snapshot: Snapshot = {
    ...bare,
    journal: journalOf(bare, records),
    attempts: new Map(
      [...records.values()].flatMap(({ runningSteps }) =>
        runningSteps.map((id): [string, AttemptObservation] => [id, { state: 'running' }]),
      ),
    ),
    preparations: merged(
      views.flatMap((view) => preparationsOf(view, { hasStarted: hasStarted(view), nowMs, evidence, records })),
    ),
    distantSkyhooks: new Set(waiting.map(({ metadata }) => metadata.name)),
    slotDenials: new Map(
      waiting.flatMap(({ metadata: { name } }) => {
        const answer = slotAnswers.get(name)
        const denial = answer?.known === true ? denialOf(answer.value, nowMs) : undefined
        return denial ? [[name, denial] as const] : []
      }),
    ),
    failures: new Map([...evidence].flatMap(([name, found]) => failuresOf(name, found, nowMs))),
  }
  return { snapshot, views, records, evidence, slotAnswers }
}

function viewOf(fleet: FleetView<KubernetesNode>, skyhook: Skyhook, node: KubernetesNode): SkyhookView {
  const { policies } = fleet
  const name = skyhook.spec.deploymentPolicy
  const view = skyhookViewOf(fleet, skyhook)
  if (!name) return view
  if (!policies.known) return { ...view, policy: { state: 'unknown', why: policies.why } }
  const found = policies.value.find((policy) => policy.metadata.name === name)
  if (!found) return { ...view, policy: { state: 'missing' } }
  const { uid, generation = 0 } = found.metadata
  const nodeLabels = node.metadata.labels ?? {}
  return { ...view, policy: { state: 'found', uid, generation, spec: found.spec, nodeLabels } }
}

function hostOf(node: KubernetesNode, evidence: readonly Evidence[]): Snapshot['host'] {
  const found = hostErrorOf(node)
  const reported = evidence.find(({ reason }) => hostFaults.some((one) => one === reason))
  const reason = hostFaults.find((one) => one === reported?.reason)
  if (reported !== undefined && reason !== undefined) return { state: 'unusable', reason, message: reported.message }
  return found === undefined ? { state: 'usable' } : { state: 'unusable', reason: 'HostUnusable', message: found }
}

/** By Skyhook. */
function takeoverMessages(node: KubernetesNode, views: readonly SkyhookView[]): ReadonlyMap<string, string> {
  const messages = new Map<string, string>()
  for (const { metadata } of views) {
    const { reason } = publishedOf(node, metadata.name)
    if (reason?.reason === 'Takeover') messages.set(metadata.name, reason.message)
  }
  return messages
}

function recordFor(
  bare: Snapshot,
  view: SkyhookView,
  evidence: ReadonlyMap<string, readonly Evidence[]>,
  edited: Skyhook | undefined,
): PublishedRecord {
  const { name, uid } = view.metadata
  const slot = slotOfSkyhook(bare, uid)
  const isAtWork = slot !== undefined && slot.phase !== 'preparing' && !isPastWork(slot.phase)
  const isMarked = hasMark(bare.node, name)
  const isSelected = selects(view.spec.nodeSelectors, bare.node.metadata.labels ?? {})
  const facts: WorkFacts = {
    hasStarted: isMarked || isAtWork,
    mayRun: !isMarked || !bare.pods.known || disruptionOf(bare, name, view.spec).isDrained,
    isSuspended: !isSelected || pauseReason(view, bare) !== undefined,
    nowMs: bare.nowMs,
    bootId: bare.bootId,
    isInterrupting: slot?.phase === 'interrupting' || slot?.phase === 'rebooting',
    evidence: evidence.get(name) ?? [],
  }
  return publishedRecord(bare.node, view, facts, edited)
}

function journalOf({ journal, bootId }: Snapshot, records: ReadonlyMap<string, PublishedRecord>): Journal {
  const entries = [...records].flatMap(([name, { record }]) => (record ? [[name, record] as const] : []))
  return { ...journal, bootId, skyhooks: Object.fromEntries(entries) }
}

function answerFor(
  snapshot: Snapshot,
  view: SkyhookView,
  leased: Known<Leased>,
  budget: Known<unknown>,
): Known<SlotAnswer> {
  if (!leased.known) return leased
  if (!budget.known) return budget
  const needsDrain = Object.values(view.spec.packages ?? {}).some(
    ({ interrupt, configInterrupts }) => interrupt !== undefined || configInterrupts !== undefined,
  )
  const isJoining = membershipOf(snapshot, view) === 'joining'
  return known(slotAnswer({ node: snapshot.node, view, leased: leased.value, isJoining, needsDrain }))
}

function denialOf({ verdict, batch, waitsFor }: SlotAnswer, nowMs: number): SlotDenial | undefined {
  if (verdict.verdict !== 'wait') return undefined
  return {
    message: batch ?? verdict.reason,
    nextRequestAtMs: nowMs + 1,
    sinceMs: nowMs,
    ...(waitsFor && { waitsFor }),
  }
}

/** The problems of a package before anything of it runs. */
export const preparationReasons: ReadonlySet<string> = new Set([
  'ImagePull',
  'ReferenceMissing',
  'InvalidPackage',
  'InvalidSpec',
])

/**
 * The same image may be on the host for one Skyhook, and be checked for another one that has not started. Of packages
 * that share an image, one may lack what its spec refers to: explain-node.ts finds which.
 */
function merged(rows: readonly (readonly [string, Preparation])[]): ReadonlyMap<string, Preparation> {
  const preparations = new Map<string, Preparation>()
  for (const [key, preparation] of rows) {
    const found = preparations.get(key)?.state
    const isLess = found === 'failed' || (preparation.state === 'checked' && found === 'ready')
    if (!isLess) preparations.set(key, preparation)
  }
  return preparations
}

/** The API does not show it. */
const unknownDigest = ''

/** What the agent reports as missing; everything else is assumed to be on the host, or in its registry. */
function preparationsOf(
  view: SkyhookView,
  {
    hasStarted,
    nowMs,
    evidence,
    records,
  }: {
    readonly hasStarted: boolean
    readonly nowMs: number
    readonly evidence: ReadonlyMap<string, readonly Evidence[]>
    readonly records: ReadonlyMap<string, PublishedRecord>
  },
): readonly (readonly [string, Preparation])[] {
  const { name: skyhook } = view.metadata
  const reported = (evidence.get(skyhook) ?? []).filter(({ reason }) => preparationReasons.has(reason))
  const ready: Preparation = hasStarted
    ? { state: 'ready', digest: unknownDigest, config: anyConfig, contentHashes: new Map() }
    : { state: 'checked' }
  const preparationOf = (name: string, spec: PackageSpec): Preparation => {
    const found = reported.find((one) => one.package === name && isAboutSpec(one, spec))
    if (!found) return ready
    const { reason, code } = found
    const message = withoutPackage(found.message)
    return { state: 'failed', reason, message, ...(code && { code }), depth: 'layers', retryAtMs: nowMs + 1 }
  }
  const packages = Object.entries(view.spec.packages ?? {})
  const ofSpec = packages.flatMap(([name, spec]) => {
    const { image, version, containerSHA: digest, env = [], resources } = spec
    const asked = { image, version, ...(digest && { digest }) }
    const references = { env, ...(resources && { resources }) }
    const preparation = preparationOf(name, spec)
    return [
      [preparationKey(asked), preparation],
      [preparationKey({ ...asked, references }), preparation],
      [preparationKey({ image, version, digest: unknownDigest }), preparation], // of a stage that is about to start
    ] as const
  })
  const ofHost = Object.values(records.get(skyhook)?.record?.packages ?? {}).flatMap((entry) => {
    const { image, version, work } = entry
    return work ? [[preparationKey({ image, version, digest: work.digest }), ready] as const] : []
  })
  return [...ofHost, ...ofSpec]
}

/** It may be about an earlier version of the package. Without a version it is assumed to be about this one. */
const isAboutSpec = ({ version: about }: Evidence, { version }: PackageSpec): boolean =>
  about === undefined || about === version

/** A package of unknown content: a step in each of these modes, so that no decision takes a stage for passed. */
export function configWith(modes: readonly Mode[], path: string): PackageConfig {
  const step: Step = {
    name: '',
    path,
    arguments: [],
    returncodes: [0],
    onHost: true,
    env: {},
    idempotence: 'step',
    upgradeStep: false,
  }
  return {
    packageName: '',
    packageVersion: '',
    expectedConfigFiles: [],
    modes: Object.fromEntries(modes.map((mode) => [mode, [step]])),
  }
}
const anyConfig = configWith(
  stagesWithSteps.flatMap((stage): readonly Mode[] => [stage, `${stage}-check`]),
  '',
)

const apiFailures: ReadonlySet<string> = new Set(['ApiServerUnavailable', 'ApiRequestRefused', 'InternalError'])
/** Failures count once they have lasted a while. */
const lastingMs = 10_000

function failuresOf(
  skyhook: string,
  evidence: readonly Evidence[],
  nowMs: number,
): readonly (readonly [string, Failure])[] {
  const found = evidence.find(({ reason }) => apiFailures.has(reason))
  if (!found) return []
  const { reason, message, sinceMs = nowMs } = found
  return [[`published ${skyhook}`, { reason, message, sinceMs: Math.min(sinceMs, nowMs - lastingMs), skyhook }]]
}
