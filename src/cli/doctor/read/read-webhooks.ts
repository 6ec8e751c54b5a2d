/** Reads the webhooks for Skyhooks, and whether they have an endpoint. */
import type { KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { apiGroup } from '../../../schemas/api.ts'
import { nodeWrightGroup } from '../../../schemas/nodewright.ts'
import { known, type Known } from '../../../stages/model/snapshot.ts'
import { type CollectionReader, readerOf } from '../../fleet-view/collections.ts'
import type { OperatorWebhook } from '../takeover/facts.ts'

const kinds = ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'] as const

type Service = { readonly namespace: string; readonly name: string }

/** `services`: those of a webhook. */
type Found = Omit<OperatorWebhook, 'unanswered'> & { readonly services: readonly Service[] }

export async function readWebhooks(
  transport: KubeTransport,
  signal: AbortSignal,
): Promise<Known<readonly OperatorWebhook[]>> {
  const read = readerOf(transport, signal)
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      const path = `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}s`
      return await read<Found>({ what: `${kind}s`, path, keep: (object) => webhookOf(kind, object) })
    }),
  )
  const hidden = lists.find((list) => !list.known)
  if (hidden !== undefined && !hidden.known) return hidden
  const found = lists.flatMap((list) => (list.known ? list.value : []))
  return known(
    await Promise.all(
      found.map(async ({ services, ...webhook }) => ({ ...webhook, unanswered: await unanswered(read, services) })),
    ),
  )
}

type WebhookObject = KubeObject & {
  readonly webhooks?: readonly {
    readonly clientConfig?: { readonly service?: Service }
    readonly rules?: readonly { readonly apiGroups?: readonly string[] }[]
  }[]
}

/** NodeWright finds its own by this label, the one that keeps Skyhooks as they are among them. */
const webhookLabel = `${nodeWrightGroup}/webhook-config`

function webhookOf(kind: Found['kind'], { metadata, webhooks = [] }: WebhookObject): Found | undefined {
  const groups = webhooks.flatMap(({ rules = [] }) => rules.flatMap(({ apiGroups = [] }) => apiGroups))
  const isAsked = groups.includes(apiGroup)
  if (!isAsked && metadata.labels?.[webhookLabel] === undefined) return undefined
  const services = webhooks.flatMap(({ clientConfig }) => clientConfig?.service ?? [])
  const unique = new Map(services.map((service) => [textOf(service), service]))
  return { kind, name: metadata.name, isAsked, services: [...unique.values()] }
}

const textOf = ({ namespace, name }: Service): string => `${namespace}/${name}`

type EndpointSlice = KubeObject & {
  readonly endpoints?: readonly { readonly conditions?: { readonly ready?: boolean } }[]
}

async function unanswered(read: CollectionReader, services: readonly Service[]): Promise<Known<readonly string[]>> {
  const silent: string[] = []
  for (const service of services) {
    const ready = await read<true>({
      what: `EndpointSlices of namespace ${service.namespace}`,
      path: `/apis/discovery.k8s.io/v1/namespaces/${service.namespace}/endpointslices`,
      query: { labelSelector: `kubernetes.io/service-name=${service.name}` },
      keep: hasReady,
    })
    if (!ready.known) return ready
    if (ready.value.length === 0) silent.push(textOf(service))
  }
  return known(silent)
}

/** An endpoint without a ready condition counts as ready. */
const hasReady = ({ endpoints }: EndpointSlice): true | undefined =>
  endpoints?.some(({ conditions }) => conditions?.ready !== false) === true ? true : undefined
