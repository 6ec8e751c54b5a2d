/** The namespace of the agents: that of their DaemonSet. */
import type { KubeTransport } from '../../../kube/transport.ts'
import { ApiError } from '../../../kube/errors.ts'
import { agentSelector } from '../../../schemas/api.ts'
import type { ObjectMeta } from '../../../schemas/kubernetes.ts'
import { CommandError, notFoundError, refusedError, exitCodes } from '../framework/command-error.ts'

type AgentDaemonSets = { readonly items?: readonly { readonly metadata: ObjectMeta }[] }

/** The chart's name for it in a release `skyhookd`. The viewer role may list only DaemonSets with the chart's name. */
const defaultName = 'skyhookd'

/**
 * The namespace of the agents' DaemonSet. Throws a `CommandError` if there is none or more than one, or if the user may
 * not list DaemonSets.
 */
export async function findAgentNamespace(transport: KubeTransport, signal: AbortSignal): Promise<string> {
  const list = await listAgentDaemonSets(transport, signal)
  const namespaces = [...new Set((list.items ?? []).map(({ metadata }) => metadata.namespace ?? ''))].sort()
  const [namespace] = namespaces
  if (namespace === undefined)
    throw notFoundError(`no DaemonSet of skyhookd in this cluster (${agentSelector})`, 'install the chart skyhookd')
  if (namespaces.length > 1) {
    const message = `several DaemonSets of skyhookd, in ${namespaces.join(', ')}`
    throw new CommandError(exitCodes.failed, message, 'choose one with -n NAMESPACE')
  }
  return namespace
}

/** Lists them in all namespaces, or in this one. Throws a refusal if the user may not list DaemonSets. */
export async function listAgentDaemonSets(
  transport: KubeTransport,
  signal: AbortSignal,
  namespace?: string,
): Promise<AgentDaemonSets> {
  const labelSelector = agentSelector
  const path = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  const list = async (query: Readonly<Record<string, string>>): Promise<AgentDaemonSets> =>
    await transport.json<AgentDaemonSets>('GET', `/apis/apps/v1${path}/daemonsets`, { query, signal })
  try {
    return await list({ labelSelector })
  } catch (error) {
    if (!isForbidden(error)) throw error
  }
  try {
    return await list({ labelSelector, fieldSelector: `metadata.name=${defaultName}` })
  } catch (error) {
    if (!isForbidden(error)) throw error
    const remedy = 'pass it with -n NAMESPACE, or ask for the role skyhook-viewer-role of the chart'
    throw refusedError("you may not list DaemonSets, so the agents' namespace is unknown", remedy)
  }
}

const isForbidden = (error: unknown): boolean => error instanceof ApiError && error.status === 403
