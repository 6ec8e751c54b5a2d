/** The part of a change of the Node to write after the API server refused its content. Pure. */
import {
  hostKey,
  journalKey,
  nodeStateKey,
  reasonKey,
  reasonsKey,
  statusKey,
  stepKey,
  versionKey,
} from '../../schemas/annotations.ts'
import type { KubernetesNode, NodePatch } from '../../schemas/kubernetes.ts'
import { type Action, emptyPatch, failureKey, isEmptyPatch } from '../model/plan.ts'
import type { Snapshot } from '../model/snapshot.ts'

/** The limit for all annotations of an object, keys and values together. */
export const maxAnnotationBytes = 256 * 1024

type PublishAction = Extract<Action, { readonly do: 'publish' }>
type Annotations = Readonly<Record<string, string | null>>

const whole = 'publish'
/** Another key, so that it does not wait for the retry of the whole change. */
const essential = 'publish without texts'

/** The key of both among the failures. */
export const publishFailureKeys: ReadonlySet<string> = new Set(
  [whole, essential].map((key) => failureKey({ do: 'publish', key })),
)

/**
 * The action that writes the change; undefined without one. Once the API server has refused its content, the parts that
 * free capacity and publish progress go first and alone.
 */
export function publishAction(
  { node, failures }: Pick<Snapshot, 'node' | 'failures'>,
  patch: NodePatch,
): PublishAction {
  const { resourceVersion: computedFrom } = node.metadata
  const isRefused = failures.get(failureKey({ do: 'publish', key: whole }))?.isContentRefused === true
  const rest = isRefused ? essentialPatch(node, patch) : emptyPatch()
  return isEmptyPatch(rest)
    ? { do: 'publish', key: whole, patch, computedFrom }
    : { do: 'publish', key: essential, patch: rest, computedFrom, refused: patch.annotations }
}

/**
 * The action with nothing but its reasons, which may be written while nothing else may; undefined without any. Refused
 * ones are tried again: nothing else of the change can go first.
 */
export function reasonsOf({ patch, refused, ...action }: PublishAction): PublishAction | undefined {
  const all = Object.entries({ ...refused, ...patch.annotations })
  const reasons = all.filter(([key]) => key.startsWith(reasonKey('')))
  const annotations = Object.fromEntries(reasons)
  return reasons.length === 0 ? undefined : { ...action, key: whole, patch: { ...emptyPatch(), annotations } }
}

/**
 * The change without texts. If the annotations would still be too large, it removes the texts on the Node, and then
 * leaves out the states of one Skyhook after the other, the largest first.
 */
export function essentialPatch(node: KubernetesNode, patch: NodePatch): NodePatch {
  const current = node.metadata.annotations ?? {}
  const annotations = Object.fromEntries(
    Object.entries(patch.annotations).filter(([key, value]) => value === null || !isText(key)),
  )
  const labels = { ...patch.labels }
  if (bytesAfter(current, annotations) > maxAnnotationBytes)
    for (const key of Object.keys(current)) if (isText(key)) annotations[key] = null
  for (const skyhook of byGrowth(current, annotations)) {
    if (bytesAfter(current, annotations) <= maxAnnotationBytes) break
    for (const keyOf of stateKeys) delete annotations[keyOf(skyhook)]
    delete labels[statusKey(skyhook)]
  }
  return { ...patch, annotations, labels }
}

/** The size of the annotations, and the largest one, as the end of a sentence. */
export function annotationRoom({ metadata: { annotations = {} } }: KubernetesNode): string {
  const sizes = Object.entries(annotations).map(([key, value]) => [key, bytesOf(key, value)] as const)
  const total = sizes.reduce((sum, [, bytes]) => sum + bytes, 0)
  const [largest] = sizes.toSorted(([, a], [, b]) => b - a)
  const what = largest === undefined ? '' : `; the largest is ${largest[0]} with ${largest[1]}`
  return `the annotations of the Node have ${total} of ${maxAnnotationBytes} bytes${what}`
}

const textPrefixes = [reasonKey(''), reasonsKey(''), stepKey('')]
const isText = (key: string): boolean => key === hostKey || textPrefixes.some((prefix) => key.startsWith(prefix))

const stateKeys = [nodeStateKey, journalKey, statusKey, versionKey]

const bytesOf = (key: string, value: string): number => Buffer.byteLength(key) + Buffer.byteLength(value)

function bytesAfter(current: Readonly<Record<string, string>>, change: Annotations): number {
  const after = { ...current, ...change }
  return Object.entries(after).reduce((sum, [key, value]) => sum + (value === null ? 0 : bytesOf(key, value)), 0)
}

/** The Skyhooks whose states the change makes longer, the largest first. */
function byGrowth(current: Readonly<Record<string, string>>, change: Annotations): readonly string[] {
  const growths = new Map<string, number>()
  for (const keyOf of stateKeys) {
    const prefix = keyOf('')
    for (const [key, value] of Object.entries(change)) {
      if (!key.startsWith(prefix) || value === null) continue
      const before = current[key]
      const growth = bytesOf(key, value) - (before === undefined ? 0 : bytesOf(key, before))
      const skyhook = key.slice(prefix.length)
      growths.set(skyhook, (growths.get(skyhook) ?? 0) + growth)
    }
  }
  return [...growths].toSorted(([, a], [, b]) => b - a).flatMap(([skyhook, growth]) => (growth > 0 ? [skyhook] : []))
}

/** Publishes what the agent found on the host on the Node, even if no Skyhook selects it. */
export function hostPatch({ hostReport, node }: Snapshot): NodePatch {
  const patch = emptyPatch()
  if (hostReport !== undefined && node.metadata.annotations?.[hostKey] !== hostReport)
    patch.annotations[hostKey] = hostReport
  return patch
}
