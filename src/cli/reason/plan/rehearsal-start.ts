/**
 * The node as a rehearsal starts with it: nothing but the work itself stands in its way, and pauses after failures are
 * short, because steps take no time. Pure.
 */
import type { Journal } from '../../../schemas/journal.ts'
import type { PackageRecord } from '../../../schemas/package-record.ts'
import type { NodeCondition } from '../../../schemas/kubernetes.ts'
import { stagesWithSteps } from '../../../schemas/package-config.ts'
import { publishedOf } from '../../../schemas/published.ts'
import { known, type Preparation, type Snapshot } from '../../../stages/model/snapshot.ts'
import { configWith } from '../explain/node-snapshot.ts'

/** What could stand in the way only for now is out of the way; what is due is done from the next moment on. */
export const prepared = (start: Snapshot): Snapshot => ({
  ...start,
  nowMs: start.nowMs + 1,
  ...beforeAdoption(start, withShortPauses(start.journal, start.nowMs + 1)),
  node: inTouch(start.node),
  slotDenials: new Map(),
  distantSkyhooks: new Set(),
  preparations: allPrepared,
  failures: new Map(),
  evictions: new Map(),
  interrupts: new Map(),
  pods: known({ pods: [], since: 'cordoned' }),
  slots: known(start.slots.known ? start.slots.value : []),
  host: { state: 'usable' },
})

/** What only the operator has written, the agent adopts by its first decision: its files are taken to be on the host. */
function beforeAdoption(
  { node, skyhooks }: Snapshot,
  { skyhooks: records, ...journal }: Journal,
): Pick<Snapshot, 'journal' | 'hostFolders'> {
  const names = skyhooks.known ? skyhooks.value.map(({ metadata }) => metadata.name) : []
  const hostFolders = new Set(names.filter((name) => publishedOf(node, name).origin === 'unsigned'))
  const own = Object.entries(records).filter(([name]) => !hostFolders.has(name))
  return { journal: { ...journal, skyhooks: Object.fromEntries(own) }, hostFolders }
}

/** As its kubelet reports it once it is back: Kubernetes itself puts these taints on, and takes them off again. */
const inTouch = ({ metadata, spec, status }: Snapshot['node']): Snapshot['node'] => ({
  metadata,
  spec: { ...spec, taints: (spec?.taints ?? []).filter(({ key }) => !taintsOfSilence.has(key)) },
  status: { ...status, conditions: withReady(status?.conditions) },
})

const taintsOfSilence: ReadonlySet<string> = new Set(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'])

/** As the kubelet of a node that works reports it. */
export const withReady = (conditions: readonly NodeCondition[] = []): readonly NodeCondition[] => [
  ...conditions.filter(({ type }) => type !== 'Ready'),
  { type: 'Ready', status: 'True' },
]

/** A package that has something to do in each stage. */
const anyConfig = { ...configWith(stagesWithSteps, 'step'), packageName: 'any', packageVersion: '1.0.0' }

/** All images are on the host, of whichever package: one that takes longer would let others go first. */
class AllPrepared extends Map<string, Preparation> {
  override get = (): Preparation => ready
  override has = (): boolean => true
}
const ready: Preparation = { state: 'ready', digest: 'rehearsed', config: anyConfig, contentHashes: new Map() }
const allPrepared = new AllPrepared()

/** When packages that failed are tried again, the first one first. */
export const pauseEnds = ({ skyhooks }: Journal): readonly number[] =>
  [...new Set(Object.values(skyhooks).flatMap(({ packages }) => Object.values(packages).flatMap(endOf)))].toSorted(
    (a, b) => a - b,
  )

const endOf = ({ progress }: PackageRecord): number | readonly [] =>
  progress.state === 'retrying' ? progress.retryAtMs : []

/**
 * Those that have not passed last next to nothing, and end in their order: a package that is tried again later than
 * another one owes its interrupt later. Their length would end other waits, which have nothing to do with the edit.
 */
export function withShortPauses(journal: Journal, nowMs: number): Journal {
  const late = pauseEnds(journal).filter((endMs) => endMs > nowMs)
  const shortened = (entry: PackageRecord): PackageRecord => {
    const { progress } = entry
    if (progress.state !== 'retrying') return entry
    return {
      ...entry,
      progress: { ...progress, retryAtMs: nowMs + late.indexOf(progress.retryAtMs) + 1 },
    } as PackageRecord
  }
  return {
    ...journal,
    skyhooks: changed(journal.skyhooks, (record) => ({ ...record, packages: changed(record.packages, shortened) })),
  }
}

const changed = <T>(record: Readonly<Record<string, T>>, change: (value: T) => T): Readonly<Record<string, T>> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
