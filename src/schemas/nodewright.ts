/**
 * What NodeWright, the successor of the Skyhook operator, leaves on a Node and on a Skyhook. It keeps its record in its
 * own API group and under its own prefix, and agents cannot continue it. An agent that sees a trace of it starts
 * nothing until a person has decided.
 */
import { apiGroup } from './api.ts'

/** Its group in the Kubernetes API, and the prefix of its annotations, labels, taint and conditions. */
export const nodeWrightGroup = 'nodewright.nvidia.com'

/** Its definition of NodeWrights. It stays in the cluster when the operator is uninstalled. */
export const nodeWrightDefinition = `nodewrights.${nodeWrightGroup}`

/** Answers 404 unless the API server serves a version of the group; every authenticated client may ask. */
export const nodeWrightGroupPath = `/apis/${nodeWrightGroup}`

/** Ours, on a Skyhook: with `"true"`, the record of NodeWright does not count for it. */
export const ignoreNodeWrightKey = `${apiGroup}/ignore-nodewright`

/** Ours, of the chart and in the agent's settings: the record of NodeWright does not count in the cluster. */
export const ignoreNodeWrightSetting = 'ignoreNodeWright'

type Texts = Readonly<Record<string, string>>

export const ignoresNodeWright = (annotations: Texts | undefined): boolean =>
  annotations?.[ignoreNodeWrightKey] === 'true'

/** Sets that for one Skyhook. */
export const ignoreNodeWrightCommand = (skyhook: string): string =>
  `kubectl annotate skyhook ${skyhook} ${ignoreNodeWrightKey}=true`

/** Its annotations on a Node for one rollout, which end in `_<name>`. It also writes `status_` as a label. */
const perRollout = ['nodeState', 'status', 'version', 'cordon', 'drainStart', 'drainBlocked'] as const

/** Its annotations on a Node for the rollout of that name, which is the name of the Skyhook that it came from. */
export function nodeWrightKeysOf(annotations: Texts | undefined, skyhook: string): readonly string[] {
  if (annotations === undefined) return []
  return perRollout
    .map((name) => `${nodeWrightGroup}/${name}_${skyhook}`)
    .filter((key) => Object.hasOwn(annotations, key))
}

const rolloutKey = new RegExp(`^${nodeWrightGroup.replaceAll('.', '\\.')}/(?:${perRollout.join('|')})_.+$`)

/** One of its annotations on a Node that belongs to a rollout. */
export const isNodeWrightKey = (key: string): boolean => rolloutKey.test(key)

/** Its annotations on its own objects; `mirrored-from` and `mirrored-generation` on those made from a Skyhook. */
const perObject = ['mirrored-from', 'mirrored-generation', 'legacy-migrated-at', 'version'] as const

/** The part of a Skyhook that may have its traces. */
type Marked = {
  readonly metadata: { readonly annotations?: Texts; readonly finalizers?: readonly string[] }
  readonly status?: Readonly<Record<string, unknown>>
}

/** Its traces on a Skyhook, which no one else writes: annotations, its finalizer, types of conditions. */
export function nodeWrightMarksOn({ metadata, status }: Marked): readonly string[] {
  const { annotations = {}, finalizers = [] } = metadata
  const conditions: readonly unknown[] = Array.isArray(status?.['conditions']) ? status['conditions'] : []
  const types = conditions.map((condition) => (condition as { readonly type?: unknown } | null)?.type)
  const isIts = (text: unknown): text is string => typeof text === 'string' && text.startsWith(`${nodeWrightGroup}/`)
  return [
    ...perObject.map((name) => `${nodeWrightGroup}/${name}`).filter((key) => Object.hasOwn(annotations, key)),
    ...finalizers.filter(isIts),
    ...types.filter(isIts),
  ]
}
