/**
 * What agents do about the operator's work on one node, by their own decision: what they leave alone, what they repeat,
 * and what they would not know.
 */
import { cordonKey } from '../../../schemas/annotations.ts'
import type { PackageRecord } from '../../../schemas/package-record.ts'
import { ownValue } from '../../../schemas/json.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { ignoresNodeWright, nodeWrightKeysOf } from '../../../schemas/nodewright.ts'
import { type Published, publishedOf } from '../../../schemas/published.ts'
import { configUpdatesOf } from '../../../schemas/rolled-out-configs.ts'
import { completionHash } from '../../../stages/model/package-inputs.ts'
import { dueOf } from '../../../stages/package/next-stage.ts'
import { adoptEntries, continuationOf } from '../../../stages/skyhook/adoption.ts'
import type { OperatorSkyhook, PackageConfigMap } from './facts.ts'

/** A package of one node, as `name version`, with the stage that the operator was in. */
export type RepeatedPackage = { readonly package: string; readonly stage: string }

export type Adoption = {
  /**
   * `ours`: agents are installed and have worked here. `changed`: they have worked here before, and the spec or the
   * state has changed since. `complete`: nothing runs. `continues`: something runs. `first`: nothing has started.
   * `nodewright`: the started work is NodeWright's.
   */
  readonly outcome: 'ours' | 'changed' | 'complete' | 'continues' | 'first' | 'nodewright'
  /** The operator was in the middle of that stage: it runs again. */
  readonly repeated: readonly RepeatedPackage[]
}

/** Facts for all Skyhooks. */
export type AroundSkyhooks = {
  readonly configMaps: readonly PackageConfigMap[]
  /** Agents are installed. */
  readonly hasAgents: boolean
  /** By their settings. */
  readonly isNodeWrightIgnored: boolean
}

export function adoptionOf(
  skyhook: OperatorSkyhook,
  node: KubernetesNode,
  { configMaps, hasAgents, isNodeWrightIgnored }: AroundSkyhooks,
): Adoption {
  const { metadata, spec } = skyhook
  const published = publishedOf(node, metadata.name)
  const { state = '{}', status, entries = new Map() } = published
  if (published.companion !== undefined)
    return { outcome: hasAgents ? 'ours' : outcomeOfJournal(skyhook, published), repeated: [] }
  if (!isNodeWrightIgnored && hasNodeWrightState(skyhook, node)) return { outcome: 'nodewright', repeated: [] }
  const configUpdates = configUpdatesOf(skyhook.status)
  const own = configMaps.filter((one) => one.skyhook === metadata.name)
  const rolledOut = Object.fromEntries(
    own
      .filter((one) => ownValue(spec.packages, one.package)?.version === one.version)
      .map((one) => [one.package, one.data]),
  )
  const records = Object.values(adoptEntries({ spec, configUpdates }, { state, status, rolledOut }))
  const packages = spec.packages ?? {}
  const names = [...new Set([...Object.keys(packages), ...records.map(({ name }) => name)])]
  const dues = names.map((name) =>
    dueOf(
      name,
      ownValue(packages, name),
      records.filter((record) => record.name === name),
    ),
  )
  const repeated = [...entries].flatMap(([key, entry]) => {
    const [name = '', version = entry.version] = key.split('|')
    const record = records.find((one) => one.name === name && one.version === version)
    return record && isRepeated(record, continuationOf(entry))
      ? [{ package: `${name} ${version}`, stage: entry.stage ?? '' }]
      : []
  })
  const isComplete = dues.every(({ due }) => due === 'nothing')
  return { outcome: isComplete ? 'complete' : entries.size === 0 ? 'first' : 'continues', repeated }
}

/** Agents that come back trust their journal on the host. The Node has two hashes of its content. */
function outcomeOfJournal(skyhook: OperatorSkyhook, { origin, companion, status }: Published): Adoption['outcome'] {
  if (origin === 'edited') return 'changed'
  if (companion?.applied === undefined) return 'continues'
  if (companion.applied !== completionHash(skyhook)) return 'changed'
  return status === 'complete' ? 'complete' : 'continues'
}

/** Agents do not start it here, unless a setting or annotation says that NodeWright does not count. */
export const hasNodeWrightState = ({ metadata }: OperatorSkyhook, node: KubernetesNode): boolean =>
  !ignoresNodeWright(metadata.annotations) && nodeWrightKeysOf(node.metadata.annotations, metadata.name).length > 0

/** An interrupt only if it is still asked for. */
const isRepeated = ({ pendingInterrupt }: PackageRecord, continuation: ReturnType<typeof continuationOf>): boolean =>
  continuation === 'repeat' || (continuation === 'interrupt' && pendingInterrupt !== undefined)

/** The taint of Kubernetes on a cordoned node has the time of the cordon. */
const unschedulableTaint = 'node.kubernetes.io/unschedulable'

/**
 * True if the node was cordoned before the operator picked it. The cordon is then a person's, which the operator's mark
 * on the node does not show.
 */
export function isCordonOfPerson({ metadata, status }: OperatorSkyhook, node: KubernetesNode): boolean {
  const isMarked = node.metadata.annotations?.[cordonKey(metadata.name)] === 'true'
  if (!isMarked || node.spec?.unschedulable !== true) return false
  const taint = node.spec.taints?.find(({ key }) => key === unschedulableTaint)
  const cordonedAtMs = Date.parse(taint?.timeAdded ?? '')
  const pickedAtMs = Date.parse(status?.nodePriority?.[node.metadata.name] ?? '')
  return cordonedAtMs < pickedAtMs // false if one of them is unknown
}
