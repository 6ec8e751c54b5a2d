/**
 * What agents make of the operator's work on one node: what they leave alone, what they start over, and what they would
 * not know of. The other half of this is src/stages/skyhook/bootstrap.ts, which does it.
 */
import { cordonKey, statusKey } from '../../../schemas/annotations.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { PackageSpec } from '../../../schemas/skyhook.ts'
import { companionOf, nodeStateOf, parseState } from '../../../stages/model/read-annotations.ts'
import { matchesGlob } from '../../../stages/interrupt/glob.ts'
import type { OperatorSkyhook, PackageConfigMap } from './facts.ts'

/** A package of one node, as `name version`, with the stage that the operator was in. */
export type UnfinishedPackage = { readonly package: string; readonly stage: string; readonly interrupts: boolean }

export type Adoption = {
  /**
   * `ours`: an agent has worked here. `complete`: nothing runs. `starts-over`: something does. `first`: nothing has
   * begun.
   */
  readonly outcome: 'ours' | 'complete' | 'starts-over' | 'first'
  readonly startsOver: readonly UnfinishedPackage[]
  /** Being uninstalled: no agent would go on with it. */
  readonly lostUninstalls: readonly string[]
  /** Configured, and not interrupted yet: agents would take them for complete. */
  readonly lostInterrupts: readonly string[]
  /** The spec has another configuration than the operator rolled out: agents would take it for done. */
  readonly lostConfigs: readonly string[]
}

export function adoptionOf(
  skyhook: OperatorSkyhook,
  node: KubernetesNode,
  configMaps: readonly PackageConfigMap[],
): Adoption {
  const { name } = skyhook.metadata
  const none = { startsOver: [], lostUninstalls: [], lostInterrupts: [], lostConfigs: [] }
  if (companionOf(node, name) !== undefined) return { outcome: 'ours', ...none }
  const entries = Object.entries(parseState(nodeStateOf(node, name) ?? '{}') ?? {})
  const { packages = {} } = skyhook.spec
  const startsOver: UnfinishedPackage[] = []
  const lostUninstalls: string[] = []
  const lostInterrupts: string[] = []
  const lostConfigs: string[] = []
  const adopted = new Set<string>()
  for (const [key, { version: value, stage, state }] of entries) {
    const [packageName = '', version = String(value)] = key.split('|')
    const text = `${packageName} ${version}`
    const spec = packages[packageName]
    const isCurrent = spec?.version === version
    const isFinal = state === 'complete' && (stage === 'config' || stage === 'post-interrupt')
    if (isFinal && isCurrent) {
      adopted.add(packageName)
      if (stage === 'config' && isInterruptPending(skyhook, packageName, spec)) lostInterrupts.push(text)
      if (isConfigOther(name, packageName, spec, configMaps)) lostConfigs.push(text)
    } else if (stage === 'uninstall') {
      if (state !== 'complete' && state !== 'skipped') lostUninstalls.push(text)
    } else if (!isFinal)
      startsOver.push({ package: text, stage: String(stage), interrupts: spec?.interrupt !== undefined })
  }
  const isComplete = Object.keys(packages).every((one) => adopted.has(one))
  const outcome = isComplete && lostUninstalls.length === 0 ? 'complete' : entries.length > 0 ? 'starts-over' : 'first'
  return { outcome, startsOver, lostUninstalls, lostInterrupts, lostConfigs }
}

/**
 * As the operator decides it: after a roll of configuration by the keys of that roll, which stay in the status, else by
 * the package's own interrupt.
 */
function isInterruptPending({ status }: OperatorSkyhook, name: string, spec: PackageSpec): boolean {
  const keys = status?.configUpdates?.[name] ?? []
  if (keys.length === 0) return spec.interrupt !== undefined
  return Object.keys(spec.configInterrupts ?? {}).some((pattern) => keys.some((key) => matchesGlob(pattern, key)))
}

function isConfigOther(
  skyhook: string,
  name: string,
  { version, configMap = {} }: PackageSpec,
  configMaps: readonly PackageConfigMap[],
): boolean {
  const rolledOut = configMaps.find(
    (one) => one.skyhook === skyhook && one.package === name && one.version === version,
  )?.data
  if (rolledOut === undefined || Object.keys(configMap).length === 0) return false
  const keys = new Set([...Object.keys(rolledOut), ...Object.keys(configMap)])
  return [...keys].some((key) => rolledOut[key] !== configMap[key])
}

/** The taint that Kubernetes puts on a cordoned node says since when it is one. */
const unschedulableTaint = 'node.kubernetes.io/unschedulable'

/**
 * True where the node was cordoned before the operator picked it: the cordon is a person's, and the operator's mark on
 * the node does not say so.
 */
export function isCordonOfPerson({ metadata, status }: OperatorSkyhook, node: KubernetesNode): boolean {
  const isMarked = node.metadata.annotations?.[cordonKey(metadata.name)] === 'true'
  if (!isMarked || node.spec?.unschedulable !== true) return false
  const taint = node.spec.taints?.find(({ key }) => key === unschedulableTaint)
  const cordonedAtMs = Date.parse(taint?.timeAdded ?? '')
  const pickedAtMs = Date.parse(status?.nodePriority?.[node.metadata.name] ?? '')
  return cordonedAtMs < pickedAtMs // false where one of them is not known
}

/** Keys of a Node that belong to a Skyhook which is no longer there. */
export const namesWithState = ({ metadata: { annotations = {} } }: KubernetesNode): readonly string[] => {
  const prefix = statusKey('')
  return Object.keys(annotations).flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : []))
}
