/**
 * What only the host knows, as its agent has reported it: by the reasons on the Node, and by Events. Both may be old,
 * edited or gone: an answer that nothing else contradicts is taken, and one that an Event confirms is taken first.
 */
import { readBlockedDrain } from '../../kube/admission-refusal.ts'
import { hostKey, reasonKey, reasonsKey, statusKey } from '../../schemas/annotations.ts'
import { type ReasonName, reasons, statusFor } from '../../schemas/catalogue/reasons.ts'
import { isObject, parseJson } from '../../schemas/json.ts'
import { clip } from '../../schemas/plain-text.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import type { NodeEvent } from '../fleet-view/node-detail.ts'

export type Evidence = {
  readonly reason: ReasonName
  readonly message: string
  /** Wall clock of who wrote it, in ms since 1970; undefined where it does not say. */
  readonly sinceMs: number | undefined
  readonly source: 'annotation' | 'event'
  /** The package that it is about, where it says one. */
  readonly package?: string | undefined
}

/** The reason that the Node shows for a Skyhook, whatever it says. */
export type PublishedReason = {
  readonly reason: string
  readonly message: string
  readonly sinceMs: number | undefined
}

export function publishedReasonOf(node: KubernetesNode, skyhook: string): PublishedReason | undefined {
  return reasonIn(parseJson(node.metadata.annotations?.[reasonKey(skyhook)] ?? ''))
}

/** Reasons that nothing but the host's agent can know. */
const hostReasons: ReadonlySet<string> = new Set<ReasonName>([
  'Preparing',
  'ApiServerUnavailable',
  'NodeNotReady',
  'StepFailed',
  'CheckFailed',
  'InvalidPackage',
  'ImagePull',
  'ReferenceMissing',
  'RebootRefused',
  'RebootLoop',
  'InternalError',
  'HostUnreachable',
  'HostUnusable',
  'CrashLoop',
  'ApiRequestRefused',
  'InvalidSpec', // of a package: what it expects and does not find in the spec
])

/** The API server forgets Events after this long. */
const eventLifeMs = 3_600_000
/** The agent reports reasons later than it publishes them, and clocks differ. */
const reportSlackMs = 15_000

export type EvidenceRequest = {
  readonly node: KubernetesNode
  readonly skyhook: string
  readonly events: Known<readonly NodeEvent[]>
  readonly takenAtMs: number
}

/** The most credible first; what the Events of an hour would have to confirm, and do not, is left out. */
export function evidenceOf({ node, skyhook, events, takenAtMs }: EvidenceRequest): readonly Evidence[] {
  const published = publishedEvidence(node, skyhook)
  if (!events.known) return published
  const reported = eventsSinceCompletion(skyhook, events.value)
  const status = node.metadata.annotations?.[statusKey(skyhook)]
  const isReported = ({ reason }: Evidence): boolean => reported.some((one) => one.reason === reason)
  const isSilent = ({ reason }: Evidence): boolean => !reasons[reason].eventOn.some((object) => object === 'Node')
  const isNew = ({ sinceMs = 0 }: Evidence): boolean => takenAtMs - sinceMs < reportSlackMs
  // of what began long ago the Event may be forgotten: then at least the status has to go with it
  const isForgotten = ({ reason, sinceMs }: Evidence): boolean =>
    (sinceMs === undefined || takenAtMs - sinceMs > eventLifeMs - reportSlackMs) &&
    [true, false].some((hasSlot) => statusFor(reason, hasSlot) === status)
  const credible = published.filter((one) => isReported(one) || isSilent(one) || isNew(one) || isForgotten(one))
  return [...credible, ...reported]
}

function publishedEvidence(node: KubernetesNode, skyhook: string): readonly Evidence[] {
  const { annotations = {} } = node.metadata
  const ofNode = publishedReasonOf(node, skyhook)
  const ofPackages = parseJson(annotations[reasonsKey(skyhook)] ?? '')
  const rows = isObject(ofPackages) ? Object.entries(ofPackages) : []
  return [
    ...(ofNode ? [{ published: ofNode, name: packageIn(ofNode.message) }] : []),
    ...rows.flatMap(([name, value]) => {
      const published = reasonIn(value)
      return published ? [{ published, name }] : []
    }),
  ].flatMap(({ published, name }) => evidenceFrom(published, 'annotation', name))
}

function eventsSinceCompletion(skyhook: string, events: readonly NodeEvent[]): readonly Evidence[] {
  const own = events.filter(({ message }) => new RegExp(`^Skyhook ${RegExp.escape(skyhook)}[,: ]`).test(message))
  const endMs = Math.max(
    -Infinity,
    ...own.filter(({ reason }) => reason === 'SkyhookCompleted').map(({ atMs }) => atMs),
  )
  return own
    .filter(({ atMs }) => atMs >= endMs)
    .flatMap(({ reason, message, atMs }) => {
      const [, name, text] = /^Skyhook [^,: ]+(?:, package ([^:]+))?: (.*)$/s.exec(message) ?? []
      const published = { reason, message: text ?? message, sinceMs: atMs }
      return evidenceFrom(published, 'event', name ?? packageIn(published.message))
    })
}

const evidenceFrom = (
  { reason, message, sinceMs }: PublishedReason,
  source: Evidence['source'],
  name: string | undefined,
): readonly Evidence[] =>
  hostReasons.has(reason) || isDeniedDrain(reason, message)
    ? [{ reason: reason as ReasonName, message, sinceMs, source, package: name }]
    : []

/** What the API server says to an eviction, only who asks for it hears. */
const isDeniedDrain = (reason: string, message: string): boolean =>
  reason === 'DrainBlocked' && readBlockedDrain(message) !== undefined

/** Reasons of packages begin with the package; the version follows where work has started. */
const packageIn = (message: string): string | undefined => /^package ([^ :]+)(?: [^:]+)?: /.exec(message)?.[1]

/** The message without the package that it begins with. */
export const withoutPackage = (message: string): string => message.replace(/^package [^:]+: /, '')

/** Agents write a quarter of it; whoever else may write a Node fills no screen. */
const maxMessageLength = 4_096

function reasonIn(value: unknown): PublishedReason | undefined {
  if (!isObject(value)) return undefined
  const { reason, message, since } = value
  if (typeof reason !== 'string' || typeof message !== 'string') return undefined
  const sinceMs = Date.parse(typeof since === 'string' ? since : '')
  return { reason, message: clip(message, maxMessageLength), sinceMs: Number.isNaN(sinceMs) ? undefined : sinceMs }
}

/** What the agent found wrong with the host, as the Node shows it: undefined without an error. */
export const hostErrorOf = (node: KubernetesNode): string | undefined =>
  hostFindings(node, ({ severity }) => severity === 'error')

/** Why the host must not be rebooted, as the Node shows it. */
export const rebootBarrierOf = (node: KubernetesNode): string | undefined =>
  hostFindings(node, ({ id }) => id === 'no-reboot')

/** Their messages; undefined without one. */
function hostFindings(
  { metadata }: KubernetesNode,
  isMatch: (finding: Readonly<Record<string, unknown>>) => boolean,
): string | undefined {
  const report = parseJson(metadata.annotations?.[hostKey] ?? '')
  const findings: unknown = isObject(report) ? report['findings'] : undefined
  if (!Array.isArray(findings)) return undefined
  const messages = findings.flatMap((one: unknown) =>
    isObject(one) && isMatch(one) && typeof one['message'] === 'string' ? [one['message']] : [],
  )
  return messages.length === 0 ? undefined : clip(messages.join('; '), maxMessageLength)
}
