/** One pod, evicted through the Eviction API, which respects PodDisruptionBudgets. */
import { messageOf } from '../schemas/json.ts'
import { ApiError, isConflict, isNotFound, isTooManyRequests, retryAfterMsOf } from './errors.ts'
import { type KubeObject, listAll, metadataOnlyAccept } from './objects.ts'
import type { KubeTransport } from './transport.ts'

export type PodIdentity = { readonly namespace: string; readonly name: string; readonly uid: string }

export type EvictionOutcome =
  /** The pod terminates in its own time. */
  | { readonly outcome: 'requested' }
  /** No pod of this uid exists any more. */
  | { readonly outcome: 'gone' }
  /** Refused for now; `message` names the budget with its current counters, or the webhook or policy. */
  | {
      readonly outcome: 'blocked'
      readonly by: 'budget' | 'admission'
      readonly message: string
      readonly retryAfterMs: number | undefined
    }

/**
 * Asks once. The uid is compared by a GET first, and is a precondition of the eviction: the pod may be replaced in
 * between. The GET comes first because that refusal still charges the budget, for two minutes. Throws for everything
 * that is not about disruption budgets or admission. `isDryRun`: the server answers as it would and evicts nothing. It
 * charges no budget, so each pod is judged alone.
 */
export async function evict(
  transport: KubeTransport,
  { namespace, name, uid }: PodIdentity,
  signal?: AbortSignal,
  isDryRun = false,
): Promise<EvictionOutcome> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`
  try {
    const pod = await transport.json<KubeObject>('GET', path, { accept: metadataOnlyAccept, signal })
    if (pod.metadata.uid !== uid) return { outcome: 'gone' }
    if (pod.metadata.deletionTimestamp !== undefined) return { outcome: 'requested' }
    const deleteOptions = { preconditions: { uid } }
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, deleteOptions }
    if (isDryRun) {
      const body = { ...eviction, deleteOptions: { ...deleteOptions, dryRun: ['All'] } }
      await transport.json('POST', `${path}/eviction`, { body, query: { dryRun: 'All' }, signal })
    } else await transport.json('POST', `${path}/eviction`, { body: eviction, signal })
    return { outcome: 'requested' }
  } catch (error) {
    signal?.throwIfAborted()
    if (isNotFound(error)) return { outcome: 'gone' }
    const blocked = (message: string, by: 'budget' | 'admission' = 'budget'): EvictionOutcome => ({
      outcome: 'blocked',
      by,
      message,
      retryAfterMs: isTooManyRequests(error) ? retryAfterMsOf(error) : undefined,
    })
    const refusal = error instanceof ApiError ? admissionRefusalOf(error.message) : undefined
    if (refusal) return blocked(admissionRefusalText(refusal), 'admission')
    if (isConflict(error) && /UID in (the )?precondition/.test(messageOf(error))) return { outcome: 'gone' }
    if (isTooManyRequests(error)) return blocked(budgetMessage(namespace, error))
    // Two budgets over one pod: a 500 without a reason, until somebody changes them.
    if (error instanceof ApiError && error.status === 500 && /more than one PodDisruptionBudget/.test(error.message))
      return blocked(await overlappingBudgetsMessage(transport, namespace, signal))
    throw error
  }
}

/** `PDB shop/cart: needs 2 healthy pods and has 2`. */
function budgetMessage(namespace: string, error: unknown): string {
  const cause = error instanceof ApiError ? error.details?.causes?.[0]?.message : undefined
  const [, budget, rest] = /^The disruption budget (\S+) (.*)$/.exec(cause ?? '') ?? []
  if (budget === undefined || rest === undefined) return messageOf(error)
  return `PDB ${namespace}/${budget}: ${rest.replace(/ currently$/, '').replace(/\.$/, '')}`
}

async function overlappingBudgetsMessage(
  transport: KubeTransport,
  namespace: string,
  signal: AbortSignal | undefined,
): Promise<string> {
  const advice = 'several PodDisruptionBudgets select it, the API server never evicts it: remove all but one'
  try {
    const path = `/apis/policy/v1/namespaces/${encodeURIComponent(namespace)}/poddisruptionbudgets`
    const { items } = await listAll<KubeObject, string>(transport, path, {
      signal,
      transform: ({ metadata }) => `${namespace}/${metadata.name}`,
    })
    return `${advice}; PDBs of the namespace: ${items.slice(0, 5).join(', ')}`
  } catch {
    return advice // naming them is a courtesy
  }
}

/**
 * An eviction that admission does not let through: a webhook or a policy denies it, or the webhook cannot be asked.
 * This is a hand-over more often than a mistake: an operator moves its pod itself and denies the eviction meanwhile,
 * with an arbitrary HTTP code. Only the API server's message names the webhook or policy.
 */
export type AdmissionRefusal = {
  readonly by: 'webhook' | 'policy'
  /** Of the webhook or the ValidatingAdmissionPolicy. */
  readonly name: string
  readonly what: keyof typeof phrases
  /** The message of the webhook or policy, or of what failed; may be empty. */
  readonly detail: string
}

const phrases = {
  denied: 'denies its eviction',
  unanswered: 'cannot be asked about its eviction',
} as const

/** As kube-apiserver writes them (apiserver/pkg/admission), whatever the code. */
const forms: readonly (Pick<AdmissionRefusal, 'by' | 'what'> & { readonly pattern: RegExp })[] = [
  { by: 'webhook', what: 'denied', pattern: /admission webhook "([^"]+)" denied the request(?:: (.*))?/s },
  { by: 'webhook', what: 'unanswered', pattern: /failed calling webhook "([^"]+)": (.*)/s },
  {
    by: 'policy',
    what: 'denied',
    pattern: /ValidatingAdmissionPolicy '([^']+)' with binding '[^']*' denied request: (.*)/s,
  },
]

/** Undefined for a refusal that does not come from admission. */
function admissionRefusalOf(message: string): AdmissionRefusal | undefined {
  for (const { by, what, pattern } of forms) {
    const [, name, detail = ''] = pattern.exec(message) ?? []
    if (name !== undefined) return { by, name, what, detail: detail.trim() }
  }
  return undefined
}

/** `webhook evict.example.com denies its eviction: the pod will be rolled`, as reasons of Nodes have it. */
const admissionRefusalText = ({ by, name, what, detail }: AdmissionRefusal): string =>
  `${by} ${name} ${phrases[what]}${detail === '' ? '' : `: ${detail}`}`

const textPattern = new RegExp(
  String.raw`^pod (\S+) \((webhook|policy) (\S+) (${Object.values(phrases).join('|')})(?:[:;] (.*))?\)$`,
  's',
)

/** Parses the reason of a blocked drain: the pod, as namespace/name, and who refuses its eviction. */
export function readBlockedDrain(
  reason: string,
): { readonly pod: string; readonly refusal: AdmissionRefusal } | undefined {
  const [, pod, by, name, phrase, detail = ''] = textPattern.exec(reason) ?? []
  if (pod === undefined || name === undefined) return undefined
  const what = phrase === phrases.denied ? 'denied' : 'unanswered'
  return { pod, refusal: { by: by === 'policy' ? 'policy' : 'webhook', name, what, detail } }
}
