/**
 * What a Node publishes of a Skyhook, in its annotations, and of its host. Everyone who may write Nodes may have edited
 * it: it is not trusted, and only this file reads it. Pure.
 */
import * as keys from './annotations.ts'
import { sha256Hex } from './canonical-json.ts'
import { type ReasonCode, reasonCodes } from './catalogue/reason-codes.ts'
import { isObject, isTexts, type JsonObject, parseObject } from './json.ts'
import type { ObjectMeta } from './kubernetes.ts'
import { perObjectAndName, perText } from './per-object.ts'
import { plainExcerpt } from './plain-text.ts'
import { type Interrupt, interruptTypes, type NodeStatus, nodeStatuses } from './skyhook.ts'

export type Published = {
  /** `unreadable`: it has other content. */
  readonly status: NodeStatus | 'unreadable' | undefined
  /** Text of the nodeState annotation. */
  readonly state: string | undefined
  /** The content of that text; undefined where it is not a JSON object. */
  readonly entries: PublishedEntries | undefined
  /** Undefined where it is absent or not written by an agent. */
  readonly companion: PublishedCompanion | undefined
  readonly origin: Origin
  /** Why the node is not complete. */
  readonly reason: NodeReason | undefined
}

/** A step of a package that is at work, by the wall clock of its host. */
export type NodeStep = {
  readonly name: string
  readonly version: string
  /** In its config.json, such as `apply-check`. */
  readonly mode: string
  readonly path: string
  readonly sinceMs: number
  /** Of its stage, from 1. */
  readonly attempt: number
  /** When the first attempt failed; absent during the first attempt. */
  readonly failingSinceMs?: number
}

/**
 * Who wrote state and companion: the agent on this Node; `edited` or removed since; the agent on an earlier
 * registration of the Node; `unsigned`, as by the operator; or there are none.
 */
export type Origin = 'agent' | 'edited' | 'former-node' | 'unsigned' | 'nobody'

/** By `name|version`, with any content. */
export type PublishedEntries = ReadonlyMap<string, PublishedEntry>

/** The fields of an entry that have the right type. Stages and states may be those of another version, or invalid. */
export type PublishedEntry = Partial<keys.NodeStateEntry>

/** `applied` is absent in versions of the companion whose completion this agent cannot interpret. */
export type PublishedCompanion = Omit<keys.Companion, 'v' | 'nodeUID'> & { readonly nodeUID: string | undefined }

/** A reason and a message that are safe to print. `sinceMs` by the wall clock of the host, where it is known. */
export type NodeReason = Pick<keys.PublishedReason, 'reason' | 'message'> &
  ReasonSubject & {
    readonly sinceMs: number | undefined
    /** For a retried stage: how often it has failed, and when the next attempt starts. */
    readonly attempts?: number
    readonly nextTryMs?: number
  }

/** The details of a reason; undefined where its agent does not publish them, or in an unknown form. */
export type ReasonSubject = {
  readonly code?: ReasonCode | undefined
  readonly package?: { readonly name: string; readonly version: string } | undefined
}

type Publisher = { readonly metadata: Pick<ObjectMeta, 'uid' | 'annotations'> }

/** What a Node publishes of a Skyhook, read once for each version of the Node. */
export const publishedOf: (node: Publisher, skyhook: string) => Published = perObjectAndName(
  (node: Publisher, skyhook: string) => published(node, keysOf(skyhook), readState),
)

/** The same for many Nodes at once: a state that they have in common is read and hashed once. */
export function createPublishedReader(): typeof publishedOf {
  const [keysOnce, stateOnce] = [perText(keysOf), perText(readState)]
  return (node, skyhook) => published(node, keysOnce(skyhook), stateOnce)
}

const keysOf = (skyhook: string) => ({
  status: keys.statusKey(skyhook),
  state: keys.nodeStateKey(skyhook),
  companion: keys.journalKey(skyhook),
  reason: keys.reasonKey(skyhook),
})

type ReadState = { readonly entries: PublishedEntries | undefined; readonly sha256: string }

const readState = (text: string): ReadState => ({ entries: parseState(text), sha256: sha256Hex(text) })

function published(
  { metadata: { uid, annotations = {} } }: Publisher,
  key: ReturnType<typeof keysOf>,
  stateOf: (text: string) => ReadState,
): Published {
  const { [key.status]: status, [key.state]: state } = annotations
  const found = state === undefined ? undefined : stateOf(state)
  const companion = companionIn(parseObject(annotations[key.companion]))
  return {
    status: status === undefined ? undefined : (nodeStatuses.find((one) => one === status) ?? 'unreadable'),
    state,
    entries: found?.entries,
    companion,
    origin: originOf(companion, found?.sha256, uid),
    reason: reasonIn(parseObject(annotations[key.reason])),
  }
}

function originOf(companion: PublishedCompanion | undefined, sha256: string | undefined, uid: string): Origin {
  if (companion === undefined) return sha256 === undefined ? 'nobody' : 'unsigned'
  if (companion.sha256 !== sha256) return 'edited'
  return companion.nodeUID === uid ? 'agent' : 'former-node'
}

function companionIn(value: JsonObject = {}): PublishedCompanion | undefined {
  const { v, rev, sha256, nodeUID, applied, completedBy, foundComplete, reboots, work } = value
  if (typeof sha256 !== 'string' || !isCount(rev)) return undefined
  return {
    rev,
    sha256,
    nodeUID: textOf(nodeUID),
    ...(v === 1 && typeof applied === 'string' && { applied }),
    ...(isSpecVersion(completedBy) && { completedBy }),
    ...(foundComplete === true && { foundComplete }),
    ...(isRebootCounts(reboots) && { reboots }),
    ...(isObject(work) && { work: workIn(work) }),
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value)

const isSpecVersion = (value: unknown): value is keys.SpecVersion =>
  isObject(value) && typeof value['uid'] === 'string' && isCount(value['generation'])

const isRebootCounts = (value: unknown): value is NonNullable<keys.Companion['reboots']> =>
  isObject(value) && Object.values(value).every(isRebootCount)

const isRebootCount = (value: unknown): value is keys.RebootCount =>
  isObject(value) &&
  isCount(value['done']) &&
  (value['askedInBoot'] === undefined || typeof value['askedInBoot'] === 'string')

/** Without fields of the wrong type. */
const workIn = (work: JsonObject): NonNullable<keys.Companion['work']> =>
  Object.fromEntries(
    Object.entries(work).map(([key, one]) => {
      const { inputs, wasComplete, changed, configInterrupts, interrupt, uninstall, isRetained, isAdopted } = isObject(
        one,
      )
        ? one
        : {}
      const found: keys.PublishedWork = {
        ...(typeof inputs === 'string' && { inputs }),
        ...(wasComplete === true && { wasComplete }),
        ...(isTexts(changed) && { changed }),
        ...(isInterrupts(configInterrupts) && { configInterrupts }),
        ...(isInterrupt(interrupt) && { interrupt }),
        ...(isObject(uninstall) && { uninstall: uninstallIn(uninstall) }),
        ...(isRetained === true && { isRetained }),
        ...(isAdopted === true && { isAdopted }),
      }
      return [key, found]
    }),
  )

const uninstallIn = ({ enabled, apply }: JsonObject): NonNullable<keys.PublishedWork['uninstall']> => ({
  ...(typeof enabled === 'boolean' && { enabled }),
  ...(typeof apply === 'boolean' && { apply }),
})

const isInterrupts = (value: unknown): value is Readonly<Record<string, Interrupt>> =>
  isObject(value) && Object.values(value).every(isInterrupt)

const isInterrupt = (value: unknown): value is Interrupt =>
  isObject(value) &&
  interruptTypes.some((one) => one === value['type']) &&
  (value['services'] === undefined || isTexts(value['services'])) &&
  (value['when'] === undefined || value['when'] === 'required')

/** The entries of a nodeState text; undefined where it is not a JSON object. */
export function parseState(text: string): PublishedEntries | undefined {
  const entries = parseObject(text)
  return entries && new Map(Object.entries(entries).map(([key, entry]) => [key, entryIn(isObject(entry) ? entry : {})]))
}

function entryIn(entry: JsonObject): PublishedEntry {
  const texts = entryTexts.flatMap((field) => (typeof entry[field] === 'string' ? [[field, entry[field]]] : []))
  const { restarts } = entry
  return { ...Object.fromEntries(texts), ...(isRestartCount(restarts) && { restarts }) }
}

const entryTexts = ['name', 'version', 'image', 'containerSHA', 'stage', 'state'] as const

/** As in the definition of Skyhooks. */
const isRestartCount = (value: unknown): value is number => isCount(value) && value > 0 && value < 2 ** 31

/** The reasons of failing packages, by the name of the package. */
export function packageReasonsOf({ metadata }: Publisher, skyhook: string): ReadonlyMap<string, NodeReason> {
  const reasons = parseObject(metadata.annotations?.[keys.reasonsKey(skyhook)]) ?? {}
  return new Map(
    Object.entries(reasons).flatMap(([name, value]) => {
      const reason = reasonIn(isObject(value) ? value : {})
      return reason ? [[name, reason] as const] : []
    }),
  )
}

/**
 * The step that runs on the Node, if it publishes one; `entries`: the published packages. A step of a finished stage
 * has ended, too.
 */
export function nodeStepOf(
  { metadata }: Publisher,
  skyhook: string,
  entries: PublishedEntries | undefined,
): NodeStep | undefined {
  const text = metadata.annotations?.[keys.stepKey(skyhook)]
  const { package: key, mode, path, since, attempt, failingSince } = parseObject(text) ?? {}
  const of = subjectIn(undefined, key).package
  const { stage, state } = entries?.get(textOf(key) ?? '') ?? {}
  const [sinceMs, failingSinceMs] = [timeIn(since), timeIn(failingSince)]
  if (of === undefined || state !== 'in_progress' || typeof path !== 'string') return undefined
  if (typeof mode !== 'string' || (mode !== stage && mode !== `${stage}-check`)) return undefined
  if (sinceMs === undefined || !isRestartCount(attempt)) return undefined
  const shownPath = plainExcerpt(path, maxPathLength)
  return { ...of, mode, path: shownPath, sinceMs, attempt, ...(failingSinceMs !== undefined && { failingSinceMs }) }
}

const maxPathLength = 128

/** An edited one must not make a status or an Event so large that the API server refuses it, nor fill a screen. */
const reasonForm = /^[A-Z][A-Za-z0-9]{0,63}$/
const maxMessageLength = 1_024

function reasonIn(published: JsonObject = {}): NodeReason | undefined {
  const { reason, message, code, package: key, since, attempts, nextTry } = published
  if (typeof reason !== 'string' || !reasonForm.test(reason) || typeof message !== 'string') return undefined
  const nextTryMs = timeIn(nextTry)
  return {
    reason,
    message: plainExcerpt(message, maxMessageLength),
    ...subjectIn(code, key),
    sinceMs: timeIn(since),
    ...(isRestartCount(attempts) && { attempts }),
    ...(nextTryMs !== undefined && { nextTryMs }),
  }
}

function timeIn(value: unknown): number | undefined {
  const ms = Date.parse(textOf(value) ?? '')
  return Number.isNaN(ms) ? undefined : ms
}

/** The details of the Event of a reason. */
export const subjectOfEvent = ({ [keys.eventCodeKey]: code, [keys.eventPackageKey]: key }: Texts = {}): ReasonSubject =>
  subjectIn(code, key)

type Texts = Readonly<Record<string, string>>

/** The limits of names and versions in the definition of Skyhooks. */
const packageForm = /^(?<name>[a-z]([-a-z0-9]{0,61}[a-z0-9])?)\|(?<version>v?[0-9][-+.0-9A-Za-z]{0,127})$/

function subjectIn(code: unknown, key: unknown): ReasonSubject {
  const { name, version } = packageForm.exec(textOf(key) ?? '')?.groups ?? {}
  return {
    ...(isReasonCode(code) && { code }),
    ...(name !== undefined && version !== undefined && { package: { name, version } }),
  }
}

const isReasonCode = (value: unknown): value is ReasonCode =>
  typeof value === 'string' && Object.hasOwn(reasonCodes, value)

/** What an agent publishes of its host: facts, most of them texts, and what makes it unfit for work. */
export type HostReport = { readonly facts: JsonObject; readonly findings: readonly HostFinding[] }

/** Of src/host/preflight/findings.ts; empty where it is not published. */
export type HostFinding = Readonly<Record<'id' | 'severity' | 'message' | 'remedy', string>>

/** Undefined where no agent has described the host. */
export function hostReportOf({ metadata }: Publisher): HostReport | undefined {
  const facts = parseObject(metadata.annotations?.[keys.hostKey])
  if (facts === undefined) return undefined
  const { findings } = facts
  return { facts, findings: Array.isArray(findings) ? findings.filter(isObject).map(hostFindingIn) : [] }
}

const hostFindingIn = ({ id, severity, message, remedy }: JsonObject): HostFinding => ({
  id: textOf(id) ?? '',
  severity: textOf(severity) ?? '',
  message: textOf(message) ?? '',
  remedy: textOf(remedy) ?? '',
})

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
