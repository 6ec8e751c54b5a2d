/**
 * What only the host knows, from the reports of its agent: reasons on the Node, and Events. Both may be old, edited or
 * gone. A report is used if nothing contradicts it, first of all one that an Event confirms.
 */
import { readBlockedDrain } from '../../../kube/evict.ts'
import { gateNames, type ReasonCode } from '../../../schemas/catalogue/reason-codes.ts'
import { type ReasonName, reasons } from '../../../schemas/catalogue/reasons.ts'
import { statusFor } from '../../../schemas/catalogue/reason.ts'
import { clip } from '../../../schemas/plain-text.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import {
  type HostFinding,
  hostReportOf,
  type NodeReason,
  packageReasonsOf,
  publishedOf,
  subjectOfEvent,
} from '../../../schemas/published.ts'
import type { Known } from '../../../stages/model/snapshot.ts'
import type { NodeEvent } from '../../fleet/fleet-view/node-detail.ts'

export type Evidence = {
  readonly reason: ReasonName
  readonly message: string
  /** By the wall clock of its writer, in ms since 1970; undefined if it has no time. */
  readonly sinceMs: number | undefined
  readonly code?: ReasonCode | undefined
  /** Its package, if it names one, and the version of the package at that time. */
  readonly package?: string | undefined
  readonly version?: string | undefined
}

/** Reasons that only the host's agent can know. */
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
  'InvalidSpec', // of a package: the spec lacks what it expects
])

/** How long the API server keeps Events. */
const eventLifeMs = 3_600_000
/** The agent reports reasons later than it publishes them, and clocks differ. */
const reportSlackMs = 15_000

export type EvidenceRequest = {
  readonly node: KubernetesNode
  readonly skyhook: string
  readonly events: Known<readonly NodeEvent[]>
  readonly takenAtMs: number
}

/** The most credible first. Reports that the Events of the hour should confirm, but do not, are left out. */
export function evidenceOf({ node, skyhook, events, takenAtMs }: EvidenceRequest): readonly Evidence[] {
  const { status, reason: ofNode } = publishedOf(node, skyhook)
  const published = ofNode ? evidenceFrom(ofNode) : []
  const ofPackages = [...packageReasonsOf(node, skyhook)].flatMap(([name, reason]) => evidenceFrom(reason, name))
  if (!events.known) return [...published, ...ofPackages]
  const reported = eventsSinceCompletion(skyhook, events.value, status)
  const isReported = ({ reason }: Evidence): boolean => reported.some((one) => one.reason === reason)
  const isSilent = ({ reason }: Evidence): boolean => !reasons[reason].eventOn.some((object) => object === 'Node')
  const isNew = ({ sinceMs = 0 }: Evidence): boolean => takenAtMs - sinceMs < reportSlackMs
  // the Event of an old report may be gone: then at least the status must agree with it
  const isForgotten = ({ reason, sinceMs }: Evidence): boolean =>
    (sinceMs === undefined || takenAtMs - sinceMs > eventLifeMs - reportSlackMs) &&
    [true, false].some((hasSlot) => statusFor(reason, hasSlot) === status)
  const isCredible = (one: Evidence): boolean => isReported(one) || isSilent(one) || isNew(one) || isForgotten(one)
  const credible = published.filter(isCredible)
  // an Event has the worst reason only, and the Node has those of the other packages beside it
  const beside = ofPackages.filter((one) => credible.length > 0 || isCredible(one))
  return [...credible, ...beside, ...reported.filter((one) => !isPast(one, ofNode))]
}

/** About the whole host: while one of them lasts, no gate behind that of the host is looked at. */
export const hostFaults = ['HostUnusable', 'HostUnreachable', 'CrashLoop'] as const satisfies readonly ReasonName[]

/** An Event outlives what it is about: since then the Node has reported a gate behind that of the host. */
const isPast = ({ reason, sinceMs = 0 }: Evidence, ofNode: NodeReason | undefined): boolean =>
  hostFaults.some((one) => one === reason) &&
  ofNode !== undefined &&
  isBehindHost(ofNode.reason) &&
  (ofNode.sinceMs ?? 0) > sinceMs

const isBehindHost = (reason: string): boolean =>
  Object.hasOwn(reasons, reason) &&
  gateNames.indexOf(reasons[reason as ReasonName].explain.gate) > gateNames.indexOf('host')

function eventsSinceCompletion(
  skyhook: string,
  events: readonly NodeEvent[],
  status: string | undefined,
): readonly Evidence[] {
  const own = events.filter(({ message }) => new RegExp(`^Skyhook ${RegExp.escape(skyhook)}[,: ]`).test(message))
  const endMs = Math.max(
    -Infinity,
    ...own.filter(({ reason }) => reason === 'SkyhookCompleted').map(({ atMs }) => atMs),
  )
  // a Node that says nothing of a completed Skyhook is one that its agent may not write to
  const isUnwritten = ({ reason }: NodeEvent): boolean => status === undefined && reason === 'ApiRequestRefused'
  return own
    .filter((event) => event.atMs >= endMs || isUnwritten(event))
    .flatMap(({ reason, message, annotations, atMs }) => {
      const [, name, text] = /^Skyhook [^,: ]+(?:, package ([^:]+))?: (.*)$/s.exec(message) ?? []
      return evidenceFrom({ reason, message: text ?? message, sinceMs: atMs, ...subjectOfEvent(annotations) }, name)
    })
}

/** `name`: of its package, if its place shows it. */
function evidenceFrom(
  { reason, message, sinceMs, code, package: about }: NodeReason,
  name = about?.name,
): readonly Evidence[] {
  if (!hostReasons.has(reason) && !isDeniedDrain(reason, message)) return []
  const version = name === about?.name ? about?.version : undefined
  return [{ reason: reason as ReasonName, message, sinceMs, code, package: name, version }]
}

/** Only the sender of an eviction gets the API server's answer. */
const isDeniedDrain = (reason: string, message: string): boolean =>
  reason === 'DrainBlocked' && readBlockedDrain(message) !== undefined

/** The message without the package at its start. */
export const withoutPackage = (message: string): string => message.replace(/^package [^:]+: /, '')

/** The agent's error about the host, from the Node; undefined without an error. */
export const hostErrorOf = (node: KubernetesNode): string | undefined =>
  hostMessages(node, ({ severity }) => severity === 'error')

/** Why the host must not be rebooted, from the Node. */
export const rebootBarrierOf = (node: KubernetesNode): string | undefined =>
  hostMessages(node, ({ id }) => id === 'no-reboot')

/** A report has half of it; other writers of the Node cannot fill a screen. */
const maxMessageLength = 4_096

function hostMessages(node: KubernetesNode, isMatch: (finding: HostFinding) => boolean): string | undefined {
  const messages = (hostReportOf(node)?.findings ?? []).filter(isMatch).flatMap(({ message }) => message || [])
  return messages.length === 0 ? undefined : clip(messages.join('; '), maxMessageLength)
}
