/** Which nodes are in service, their Events, and what happened between cordon and uncordon. */
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { History } from '../history.ts'
import type { Moment, View } from './moments.ts'
import { publishedState } from './skyhooks.ts'

export const isCordoned = (node: KubernetesNode | undefined): boolean => node?.spec?.unschedulable === true

export const isNodeReady = (node: KubernetesNode | undefined): boolean =>
  node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false

/** Nodes that get no pods or run none. */
export const outOfService = ({ nodes }: View): string[] =>
  [...nodes.values()].filter((node) => isCordoned(node) || !isNodeReady(node)).map(({ metadata }) => metadata.name)

/** For `never`: more nodes out of service than allowed. */
export function exceedsOutOfService(maxNodes: number): (moment: Moment) => string | undefined {
  return (moment) => {
    const out = outOfService(moment)
    return out.length > maxNodes ? `${out.join(' and ')} are out of service` : undefined
  }
}

export const isCompleteOn = ({ nodes }: View, skyhook: string, names: readonly string[]): boolean =>
  names.every((name) => publishedState(nodes.get(name), skyhook).status === 'complete')

/** An Event about the node, with this reason, whose message has all these words. */
export function hasEvent({ events }: View, node: string, reason: string, ...fragments: readonly string[]): boolean {
  return [...events.values()].some(
    (event) =>
      event.involvedObject?.name === node &&
      event.reason === reason &&
      fragments.every((word) => event.message?.includes(word) === true),
  )
}

export type ServiceState = { readonly cordoned: boolean; readonly ready: boolean; readonly bootId: string | undefined }

/** The distinct states that a node went through, in order. */
export async function serviceStates(history: History, name: string): Promise<ServiceState[]> {
  return await history.values(({ nodes }) => {
    const node = nodes.get(name)
    return { cordoned: isCordoned(node), ready: isNodeReady(node), bootId: node?.status?.nodeInfo?.bootID }
  })
}

/** The states in which it was made schedulable. */
export const uncordonedStates = (states: readonly ServiceState[]): ServiceState[] =>
  states.filter(({ cordoned }, index) => !cordoned && states[index - 1]?.cordoned === true)
