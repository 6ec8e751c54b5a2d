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
export function admissionRefusalOf(message: string): AdmissionRefusal | undefined {
  for (const { by, what, pattern } of forms) {
    const [, name, detail = ''] = pattern.exec(message) ?? []
    if (name !== undefined) return { by, name, what, detail: detail.trim() }
  }
  return undefined
}

/** `webhook evict.example.com denies its eviction: the pod will be rolled`, as reasons of Nodes have it. */
export const admissionRefusalText = ({ by, name, what, detail }: AdmissionRefusal): string =>
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
