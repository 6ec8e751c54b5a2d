import { journalKey, nodeStateKey, type Companion, type RebootCount } from '../../schemas/annotations.ts'
import { isObject, type JsonObject } from '../../schemas/json.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { perObjectAndName } from '../../schemas/per-object.ts'

/** What is read of the companion annotation; the rest of it is for people. */
type ReadCompanion = Pick<Companion, 'rev' | 'sha256' | 'applied' | 'reboots'>

/** One entry of nodeState as somebody wrote it. */
export type AnnotationEntry = {
  readonly version?: unknown
  readonly stage?: unknown
  readonly state?: unknown
  readonly image?: unknown
}

/** Text of the nodeState annotation of a Skyhook. */
export const nodeStateOf = ({ metadata }: KubernetesNode, skyhook: string): string | undefined =>
  metadata.annotations?.[nodeStateKey(skyhook)]

/** The companion annotation of a Skyhook; undefined when absent or not ours. */
export const companionOf: (node: KubernetesNode, skyhook: string) => ReadCompanion | undefined = perObjectAndName(
  ({ metadata }: KubernetesNode, skyhook: string) => {
    const { rev, sha256, applied, reboots } = parseObject(metadata.annotations?.[journalKey(skyhook)]) ?? {}
    if (typeof sha256 !== 'string' || !isCount(rev)) return undefined
    return { rev, sha256, ...(typeof applied === 'string' && { applied }), ...(isRebootCounts(reboots) && { reboots }) }
  },
)

/** Entries of nodeState; undefined when the text is not a JSON object. */
export function parseState(text: string): Record<string, AnnotationEntry> | undefined {
  const entries = parseObject(text)
  if (!entries) return undefined
  return Object.fromEntries(Object.entries(entries).map(([key, entry]) => [key, isObject(entry) ? entry : {}]))
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value)

const isRebootCounts = (value: unknown): value is Readonly<Record<string, RebootCount>> =>
  isObject(value) && Object.values(value).every(isRebootCount)

const isRebootCount = (value: unknown): value is RebootCount =>
  isObject(value) &&
  isCount(value['done']) &&
  (value['askedInBoot'] === undefined || typeof value['askedInBoot'] === 'string')

/** The JSON object in an annotation; undefined for anything else that is written there. */
export function parseObject(text: string | undefined): JsonObject | undefined {
  try {
    const value: unknown = text === undefined ? undefined : JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined // hand-edited
  }
}
