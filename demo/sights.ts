/**
 * What each node showed at any time of a rollout: on its host, in its Node, and in the pods on it. Only that
 * a node holds a slot and that it is complete are what agents write.
 */
import { isCordoned, isNodeReady } from '../test/kit/cluster/node-availability.ts'
import type { Moment, View } from '../test/kit/cluster/moments.ts'
import { publishedState } from '../test/kit/cluster/skyhooks.ts'
import { slotsOf } from '../test/kit/cluster/slots.ts'
import { shopPods } from './rows.ts'
import { runtimeRequiredTaint } from './samples.ts'

/** `bootId` is undefined while the host is off. */
export type Boot = { readonly atMs: number; readonly node: string; readonly bootId: string | undefined }

export type Rollout = {
  readonly skyhook: string
  readonly budget: number
  readonly startedMs: number
  readonly endedMs: number
}

export type NodeState = 'waiting' | 'working' | 'cordoned' | 'drained' | 'rebooting' | 'complete'

/** The states of the nodes from `atMs` on; `out`: those out of service, without one that has not joined yet. */
export type Sight = { readonly atMs: number; readonly states: readonly NodeState[]; readonly out: number }

/** In the order of time; the first one is as of the start of the rollout. */
export function sightsOf(
  moments: readonly Moment[],
  boots: readonly Boot[],
  { skyhook, startedMs, endedMs }: Rollout,
  nodes: readonly string[],
): Sight[] {
  const known = new Map<string, string | undefined>()
  let seenMs = 0
  const changes = [
    // watches arrive in any order: a change is not seen before the one that it follows
    ...moments.map((view) => ({ atMs: (seenMs = Math.max(seenMs, view.change.atMs)), view })),
    ...boots.map((boot) => ({ atMs: boot.atMs, boot })),
  ].toSorted((one, other) => one.atMs - other.atMs)
  let view: View | undefined
  const sights: Sight[] = []
  for (const change of changes) {
    if (change.atMs > endedMs) break
    if ('view' in change) view = change.view
    else known.set(change.boot.node, change.boot.bootId)
    if (view === undefined) continue
    const current = view
    const states = nodes.map((node) => stateOf(current, skyhook, node, known))
    const out = nodes.filter((node, index) => isOut(states[index]) && !isJoining(current, node)).length
    const sight = { atMs: Math.max(change.atMs, startedMs), states, out }
    if (change.atMs <= startedMs) sights.length = 0
    sights.push(sight)
  }
  return sights
}

const isOut = (state: NodeState | undefined): boolean =>
  state === 'cordoned' || state === 'drained' || state === 'rebooting'

const isJoining = (view: View, node: string): boolean =>
  view.nodes.get(node)?.spec?.taints?.some(({ key }) => key === runtimeRequiredTaint.key) === true

function stateOf(view: View, skyhook: string, name: string, boots: ReadonlyMap<string, string | undefined>): NodeState {
  const node = view.nodes.get(name)
  // a host that has booted is still missing until its Node says so
  const isBack = !boots.has(name) || boots.get(name) === node?.status?.nodeInfo?.bootID
  if (!isBack || !isNodeReady(node)) return 'rebooting'
  if (isCordoned(node)) return shopPods(view).some(({ spec }) => spec?.nodeName === name) ? 'cordoned' : 'drained'
  if (slotsOf(view, skyhook).some(({ holder }) => holder === name)) return 'working'
  return publishedState(node, skyhook).status === 'complete' ? 'complete' : 'waiting'
}
