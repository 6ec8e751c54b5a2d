/**
 * The facts of a campaign on real hosts: what was recorded of the API server and on the hosts' disks, told again in
 * order. Times of watches are later than what they tell of, so nothing is exact to less than a second.
 */
import type { Budget } from '../../src/schemas/budget.ts'
import type { AuditedRequest } from '../chaos/audit.ts'
import type { Evidence, Finding, Violation } from '../chaos/verdict/evidence.ts'
import { outagesOf, type Outage } from '../chaos/verdict/outages.ts'
import { emptyView, type View } from '../e2e/moments.ts'
import { countDelayMs } from './counts.ts'
import type { Excuses, Exemption, Fact, Promised, World } from './facts.ts'

/** A watch event arrives later than its change; what was in force this long before or after counts in favor. */
const slackMs = 1_000

const nameLabel = 'skyhook.nvidia.com/name'

/** A fact, or what changes the view or an excuse at that time. */
type Entry = {
  readonly atMs: number
  readonly fact?: Fact
  readonly view?: View
  readonly excuse?: { readonly host: string; readonly skyhook: string; readonly isOver: boolean }
}

/** A promise as a verdict on what was recorded. */
export const onRecord =
  ({ start }: Promised) =>
  (evidence: Evidence): Finding => {
    const violations: Violation[] = []
    const excuses = new Map(evidence.skyhooks.map((name) => [name, [] as Exemption[]]))
    const outages = outagesOf(evidence)
    let view: View = emptyView()
    let order = 0
    let atMs = 0
    const nobody: Excuses = { all: [], begin: () => undefined }
    const world: World = {
      order: () => order,
      skyhook: (name) => view.skyhooks.get(name),
      policy: () => undefined, // no campaign has one
      nodes: () => [...view.nodes.values()],
      hostOf: (node) => node,
      isOut: () => false,
      isTainted: () => false,
      isJoining: () => false,
      defaultBudgets: () => noDefaults,
      soaksUntilMs: () => undefined,
      excuses: (name) => ({ ...nobody, all: excuses.get(name) ?? [] }),
      countedUntilMs: () => atMs - countDelayMs - disturbedMs(evidence),
      slackMs,
    }
    const judge = start(world, (text, violatedMs) => violations.push({ atMs: violatedMs, text }))
    for (const entry of entriesOf(evidence, outages)) {
      order++
      atMs = entry.atMs
      view = entry.view ?? view
      if (entry.excuse) change(excuses.get(entry.excuse.skyhook) ?? [], entry.excuse, order)
      if (entry.fact) judge.on(entry.fact)
    }
    judge.end?.()
    return { checked: judge.checks(), violations }
  }

const noDefaults: readonly Budget[] = []

/** The longest action: in its time nobody may be able to count. */
const disturbedMs = ({ actions }: Evidence): number =>
  Math.max(0, ...actions.map(({ startedMs, endedMs }) => endedMs - startedMs))

function change(all: Exemption[], { host, isOver }: NonNullable<Entry['excuse']>, order: number): void {
  const open = all.find((one) => one.host === host && one.untilOrder === Infinity)
  if (!isOver && !open) all.push({ host, fromOrder: order, untilOrder: Infinity })
  else if (isOver && open) open.untilOrder = order
}

function entriesOf(evidence: Evidence, outages: readonly Outage[]): readonly Entry[] {
  const entries: Entry[] = [
    ...evidence.moments.flatMap((moment) => objectEntries(moment)),
    ...outages.flatMap((outage) => outageEntries(evidence, outage, outages)),
    ...evidence.deletions.flatMap((deletion) => excuseEntries(evidence, deletion)),
  ]
  return entries.toSorted((a, b) => a.atMs - b.atMs)
}

function objectEntries({
  change: { kind, type, object, atMs },
  ...view
}: Evidence['moments'][number]): readonly Entry[] {
  const { name } = object.metadata
  const by = undefined
  if (kind === 'skyhooks') return [{ atMs, view, fact: { kind: 'object', of: 'skyhook', name, by, atMs } }]
  if (kind !== 'nodes') return [{ atMs, view }]
  const after = type === 'DELETED' ? undefined : object
  return [{ atMs, view, fact: { kind: 'object', of: 'node', name, by, after, atMs } }]
}

/** The last read before the node went out is its admission. One that goes out again without any kept its slot. */
function outageEntries(evidence: Evidence, outage: Outage, outages: readonly Outage[]): readonly Entry[] {
  const { node: host, skyhook, admission, startedMs, endedMs } = outage
  const entries: Entry[] = []
  const add = (atMs: number, fact: Fact): void => void entries.push({ atMs, fact })
  if (admission) {
    const { receivedMs: fromMs, answeredMs } = admission
    add(answeredMs, { kind: 'read', host, of: 'skyhook', name: skyhook, fromMs, atMs: answeredMs })
    const listedMs = slotsListedMs(evidence, outage)
    if (listedMs !== undefined)
      add(listedMs, { kind: 'read', host, of: 'slots', name: skyhook, fromMs, atMs: listedMs })
  }
  add(startedMs, {
    kind: 'out',
    host,
    skyhook,
    isOut: true,
    cause: 'steps and cordon',
    isUnasked: !admission,
    atMs: startedMs,
  })
  if (endedMs === Infinity) return entries
  // in favor of whoever was admitted at about this time, and before its own next read
  const next = outages.find((one) => one.node === host && one.skyhook === skyhook && one.startedMs > startedMs)
  const backMs = Math.max(startedMs, Math.min(endedMs - slackMs, (next?.admission?.answeredMs ?? Infinity) - 1))
  add(backMs, { kind: 'out', host, skyhook, isOut: false, cause: 'complete', atMs: backMs })
  add(backMs, { kind: 'slot', host, skyhook, change: 'deleted', atMs: backMs })
  return entries
}

/** When the agent last saw all slots of the Skyhook before it began: its own slot comes from that. */
function slotsListedMs({ audit }: Evidence, { node, skyhook, startedMs }: Outage): number | undefined {
  const isOfScope = ({ uri }: AuditedRequest): boolean =>
    new URL(uri, 'https://kubernetes').searchParams.get('labelSelector') === `${nameLabel}=${skyhook}`
  return audit.findLast(
    (request) =>
      request.node === node &&
      request.verb === 'list' &&
      request.resource === 'leases' &&
      isOfScope(request) &&
      request.answeredMs <= startedMs,
  )?.answeredMs
}

/**
 * Somebody deleted its slot or its Node, and it had written no slot since when the other one listed the slots: nobody
 * could see that it was out.
 */
function excuseEntries(
  { moments, skyhooks }: Evidence,
  { node: host, atMs }: Evidence['deletions'][number],
): readonly Entry[] {
  return skyhooks.flatMap((skyhook) => {
    const again = moments.find(
      ({ change: { kind, type, object, atMs: changedMs } }) =>
        kind === 'leases' &&
        type === 'ADDED' &&
        changedMs > atMs &&
        object.spec?.['holderIdentity'] === host &&
        object.metadata.labels?.[nameLabel] === skyhook,
    )
    const begin: Entry = { atMs: atMs - slackMs, excuse: { host, skyhook, isOver: false } }
    if (again === undefined) return [begin]
    return [begin, { atMs: again.change.atMs + slackMs, excuse: { host, skyhook, isOver: true } }]
  })
}
