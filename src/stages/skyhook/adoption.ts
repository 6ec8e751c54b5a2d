import type { SkyhookRecord } from '../../schemas/journal.ts'
import type { ConfigRecord, PackageInputs, PackageRecord, PendingInterrupt } from '../../schemas/package-record.ts'
import { ownValue } from '../../schemas/json.ts'
import { type PublishedEntry, parseState, publishedOf } from '../../schemas/published.ts'
import type { RolledOutConfigs } from '../../schemas/rolled-out-configs.ts'
import {
  type EntryState,
  entryStates,
  type PackageSpec,
  type SkyhookSpec,
  type StageName,
  stageNames,
} from '../../schemas/skyhook.ts'
import { isConditional, matchedInterrupts, mergeInterrupts } from '../interrupt/merge.ts'
import { rebootsOfLostJournal } from '../interrupt/reboots.ts'
import { inputsOf } from '../model/package-inputs.ts'
import { newSkyhookRecord } from '../model/plan-builder.ts'
import type { StageEvent } from '../model/plan.ts'
import { packageKey, type SkyhookView, type Snapshot } from '../model/snapshot.ts'
import { type AdoptedFacts, adoptPackage, startOver } from '../model/transitions.ts'
import { cancelAll } from '../package/cancel.ts'
import { isMidChange } from '../package/next-stage.ts'

/** The operator's traces of one Skyhook on a node. */
type OperatorWork = {
  /** Text of the nodeState annotation. */
  readonly state: string
  /** The operator's status of all packages of the Skyhook together. */
  readonly status: string | undefined
  /** Undefined where they were not read. */
  readonly rolledOut?: RolledOutConfigs | undefined
}

/** Where the work on an entry continues. */
export type Continuation =
  /** Nothing of it is known to be on the host. */
  | 'absent'
  /** The stage may have run in part: it runs again. */
  | 'repeat'
  /** The stage passed: what follows is next. */
  | 'follow'
  /** Config passed, and it is unknown whether the interrupt ran: it runs. */
  | 'interrupt'

/**
 * A stage that the operator has not recorded as complete may have run in part, and stages can be repeated. The flag of
 * an interrupt on the host does not prove that it ran: the flag is written before.
 */
const continuations: Readonly<Record<StageName, Readonly<Record<EntryState, Continuation>>>> = {
  apply: { complete: 'follow', in_progress: 'repeat', erroring: 'repeat', skipped: 'repeat', unknown: 'repeat' },
  upgrade: { complete: 'follow', in_progress: 'repeat', erroring: 'repeat', skipped: 'repeat', unknown: 'repeat' },
  config: { complete: 'follow', in_progress: 'repeat', erroring: 'repeat', skipped: 'repeat', unknown: 'repeat' },
  // skipped: the interrupt of another package covered both
  interrupt: {
    complete: 'follow',
    in_progress: 'interrupt',
    erroring: 'interrupt',
    skipped: 'interrupt',
    unknown: 'interrupt',
  },
  'post-interrupt': {
    complete: 'follow',
    in_progress: 'repeat',
    erroring: 'repeat',
    skipped: 'repeat',
    unknown: 'repeat',
  },
  // skipped: the version to apply when another one has been removed from the host
  uninstall: { complete: 'absent', in_progress: 'repeat', erroring: 'repeat', skipped: 'absent', unknown: 'repeat' },
}

/**
 * From an entry with untrusted content: without a known stage nothing is known of it; any other state counts as
 * unknown.
 */
export function continuationOf({ stage, state }: PublishedEntry): Continuation {
  const known = stageNames.find((name) => name === stage)
  if (known === undefined) return 'absent'
  return continuations[known][entryStates.find((name) => name === state) ?? 'unknown']
}

/**
 * The operator's entries as records of the journal. Those that it completed at the spec's version count as complete
 * with the current spec. Before v0.5 it wrote `name` as the key instead of `name|version`, and left that beside the new
 * one.
 */
export function adoptEntries(
  view: Pick<SkyhookView, 'spec' | 'configUpdates'>,
  { state, status, rolledOut }: OperatorWork,
): Record<string, PackageRecord> {
  const records: Record<string, PackageRecord> = {}
  const entries = parseState(state) ?? new Map<string, PublishedEntry>()
  for (const [annotationKey, entry] of entries) {
    const [name = '', version = entry.version] = annotationKey.split('|')
    if (!version) continue
    const key = packageKey(name, version)
    if (key !== annotationKey && entries.has(key)) continue // twice in the annotation, once in the form before v0.5
    const spec = ownValue(view.spec.packages, name)
    const isCurrent = spec?.version === version
    const facts = adoptedFacts(entry, {
      inputs: spec ? operatorInputs(spec, isCurrent ? ownValue(rolledOut, name) : undefined) : { config: {}, env: [] },
      spec: isCurrent ? spec : undefined,
      keys: isCurrent ? (ownValue(view.configUpdates, name) ?? []) : [],
      isComplete: status === 'complete',
    })
    const image = entry.image ?? spec?.image ?? ''
    if (facts) records[key] = adoptPackage({ name, version, image }, facts)
  }
  return records
}

/**
 * Packages at the spec's version, by name, whose rolled-out configuration may be older than the spec: it is in the
 * operator's ConfigMaps.
 */
export function configuredPackages({ packages = {} }: SkyhookSpec, { state }: OperatorWork): readonly string[] {
  const entries = parseState(state)
  return Object.entries(packages).flatMap(([name, { version, configMap = {} }]) => {
    const entry = entries?.get(packageKey(name, version)) ?? entries?.get(name)
    const isPastApply = entry?.version === version && stagesPastApply.has(entry.stage ?? '')
    return isPastApply && Object.keys(configMap).length > 0 ? [name] : []
  })
}

const stagesPastApply: ReadonlySet<string> = new Set(['config', 'interrupt', 'post-interrupt'] satisfies StageName[])

/** If a configMap becomes empty, the operator keeps the rolled-out ConfigMap and does nothing. */
function operatorInputs(spec: PackageSpec, rolledOut: Readonly<Record<string, string>> | undefined): PackageInputs {
  const inputs = inputsOf(spec)
  return rolledOut && Object.keys(inputs.config).length > 0 ? { ...inputs, config: rolledOut } : inputs
}

type AdoptedPackage = {
  readonly inputs: PackageInputs
  /** Undefined for a version that the Skyhook does not request: no interrupt of it is due. */
  readonly spec: PackageSpec | undefined
  /** Keys of its configMap that the last roll touched. */
  readonly keys: readonly string[]
  /** The operator considered the whole Skyhook complete on this node. */
  readonly isComplete: boolean
}

function adoptedFacts(entry: PublishedEntry, adopted: AdoptedPackage): AdoptedFacts | undefined {
  const continuation = continuationOf(entry)
  const stage = entry.stage as StageName
  const { spec, inputs, isComplete } = adopted
  const interrupt = interruptOf(adopted)
  const config = configOf(adopted)
  switch (continuation) {
    case 'absent':
      return undefined
    case 'repeat': {
      const progress = { state: 'due', stage } as const
      if (stage === 'apply' || stage === 'upgrade') return { progress }
      if (stage === 'uninstall') return { progress, config: { started: inputs, changedKeys: [] } }
      return {
        progress,
        config,
        ...(stage === 'config' ? { pendingInterrupt: interrupt } : { metInterrupt: interrupt }),
      }
    }
    case 'follow': {
      const progress = { state: 'complete', stage } as const
      if (stage === 'apply' || stage === 'upgrade') return { progress, pendingInterrupt: spec && ownInterrupt(spec) }
      if (stage === 'interrupt') return { progress, config, metInterrupt: interrupt }
      const isFinal = stage === 'post-interrupt' || isComplete || interrupt === undefined
      return isFinal ? { progress, config: finished(inputs) } : { progress, config, pendingInterrupt: interrupt }
    }
    case 'interrupt': {
      const progress = { state: 'complete', stage: 'config' } as const
      return interrupt ? { progress, config, pendingInterrupt: interrupt } : { progress, config: finished(inputs) }
    }
  }
}

/**
 * The operator's pending interrupt after config: after a roll of configuration the interrupts of its keys, otherwise
 * the package's own. The keys of the last roll stay in the status, so they also show which packages are complete after
 * config.
 */
function interruptOf({ spec, keys }: AdoptedPackage): PendingInterrupt | undefined {
  if (spec === undefined) return undefined
  if (keys.length === 0) return ownInterrupt(spec)
  const interrupt = mergeInterrupts(matchedInterrupts(spec.configInterrupts, keys).filter((one) => !isConditional(one)))
  return interrupt && { interrupt }
}

const ownInterrupt = ({ interrupt }: PackageSpec): PendingInterrupt | undefined =>
  interrupt && !isConditional(interrupt) ? { interrupt } : undefined

/** For a package that is not complete. Before a roll it was complete, with other content in these keys. */
const configOf = ({ inputs, keys }: AdoptedPackage): ConfigRecord =>
  keys.length === 0 ? { started: inputs, changedKeys: [] } : { ...finished(inputs), changedKeys: keys }

const finished = (inputs: PackageInputs): ConfigRecord => ({ started: inputs, finished: inputs, changedKeys: [] })

type BootstrapResult = { readonly record: SkyhookRecord; readonly event?: StageEvent }

/**
 * The initial record of a host without a journal for this Skyhook, from the Node. The operator's work is adopted if its
 * files exist. A reinstalled host starts over, but does not repeat its reboots.
 */
export function bootstrapRecord(snapshot: Snapshot, view: SkyhookView): BootstrapResult {
  const { name, uid } = view.metadata
  const { state, companion } = publishedOf(snapshot.node, name)
  const record = { ...newSkyhookRecord(uid), ...(companion && { rev: companion.rev }) }
  if (state === undefined) return { record } // reset by a person, or never worked on
  if (companion)
    return {
      record: { ...record, ...rebootsOfLostJournal(companion.reboots ?? {}, snapshot.bootId) },
      event: { type: 'startedOver', skyhook: name },
    }
  const work = operatorWorkOn(snapshot, name)
  if (work === undefined) return { record, event: { type: 'startedOver', skyhook: name } }
  return {
    record: { ...record, adopted: true, packages: adoptEntries(view, work) },
    event: { type: 'adopted', skyhook: name },
  }
}

/** Work of the operator that no agent has taken over; undefined if its files are not on the host. */
export function operatorWorkOn(
  { node, journal, hostFolders, rolledOutConfigs }: Snapshot,
  skyhook: string,
): OperatorWork | undefined {
  const { state, status, companion } = publishedOf(node, skyhook)
  if (state === undefined || Object.hasOwn(journal.skyhooks, skyhook) || companion) return undefined
  if (!hostFolders.has(skyhook)) return undefined
  return { state, status, rolledOut: rolledOutConfigs.get(skyhook) }
}

/** A Skyhook re-created under its name: complete work stays complete, unfinished work starts over or is uninstalled. */
export function recordOfSkyhook(record: SkyhookRecord | undefined, view: SkyhookView): SkyhookRecord | undefined {
  if (!record) return undefined
  const { uid } = view.metadata
  if (record.uid === uid && !record.orphaned) return record
  const canceled = cancelAll(record)
  const packages = Object.entries(canceled.packages).flatMap(([key, entry]) => {
    if (entry.work === undefined) return []
    return [[key, isMidChange(entry) ? startOver(entry) : entry]]
  })
  return {
    ...canceled,
    uid,
    lifecycle: undefined,
    orphaned: undefined,
    takenOver: packages.length > 0 ? 'unfinished' : undefined,
    packages: Object.fromEntries(packages),
  }
}
