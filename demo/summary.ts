/** What the demo saw, in five lines. */
import type { View } from '../test/kit/cluster/moments.ts'
import { isCordoned } from '../test/kit/cluster/node-availability.ts'
import { publishedState } from '../test/kit/cluster/skyhooks.ts'
import { slotsOf } from '../test/kit/cluster/slots.ts'
import type { Film } from './picture.ts'
import { shopPods } from './rows.ts'
import type { Boot } from './sights.ts'

export type Seen = {
  readonly films: readonly Film[]
  readonly boots: readonly Boot[]
  readonly nodes: readonly string[]
  /** All states of the cluster, in order. */
  readonly views: readonly View[]
  /** Files that the packages should have written, on all hosts, and how many of them are there. */
  readonly files: { readonly expected: number; readonly found: number }
}

/** Five lines of at most 80 characters, of three rollouts on hosts with names as those of the sandbox. */
export function summaryOf({ films, boots, nodes, views, files }: Seen): string[] {
  const last = views.at(-1)
  const names = films.map(({ rollout }) => rollout.skyhook)
  const isComplete = (node: string): boolean =>
    names.every((skyhook) => publishedState(last?.nodes.get(node), skyhook).status === 'complete')
  const ms = films.reduce((sum, { rollout }) => sum + rollout.endedMs - rollout.startedMs, 0)
  const mostOut = films.map(({ sights }) => Math.max(0, ...sights.map(({ out }) => out)))
  const reboots = nodes.map((node) => rebootsOf(boots, node))
  const slots = names.flatMap((skyhook) => (last ? slotsOf(last, skyhook) : [])).length
  const cordoned = nodes.filter((node) => isCordoned(last?.nodes.get(node))).length
  return [
    `${nodes.filter(isComplete).length} of ${nodes.length} nodes complete in ${counted(films.length, 'rollout')}, ` +
      `in ${(ms / 1000).toFixed(1)} s`,
    `at most ${listed(mostOut)} node${plural(mostOut.length, mostOut[0])} out of service at once, of ` +
      `${films.length === 1 ? 'a budget' : 'budgets'} of ${listed(films.map(({ rollout }) => rollout.budget))}`,
    `${counted(
      reboots.reduce((sum, one) => sum + one, 0),
      'reboot',
    )} by the boot ids of the hosts: ` + nodes.map((node, index) => `${node} ${reboots[index]}`).join(', '),
    podsText(views),
    `${files.found} of ${files.expected} files on the hosts; left: ${counted(slots, 'slot')} held, ` +
      `${counted(cordoned, 'node')} cordoned`,
  ]
}

const plural = (lists: number, only = 0): string => (lists === 1 && only === 1 ? '' : 's')
const counted = (count: number, what: string): string => `${count} ${what}${plural(1, count)}`
const listed = (numbers: readonly number[]): string => new Intl.ListFormat('en').format(numbers.map(String))

function rebootsOf(boots: readonly Boot[], name: string): number {
  const ids = boots.flatMap(({ node, bootId }) => (node === name && bootId !== undefined ? [bootId] : []))
  return Math.max(new Set(ids).size - 1, 0)
}

/** Counts from when all pods of the shop were Ready for the first time. */
function podsText(views: readonly View[]): string {
  const ready = views.map(
    (view) =>
      shopPods(view).filter(
        ({ metadata, status }) =>
          metadata.deletionTimestamp === undefined &&
          status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True'),
      ).length,
  )
  const most = Math.max(0, ...ready)
  const fewest = Math.min(most, ...ready.slice(ready.indexOf(most)))
  const pods = new Set(views.flatMap((view) => shopPods(view).map(({ metadata }) => metadata.name)))
  return `${counted(pods.size, 'pod')} of the shop in turn, never fewer than ${fewest} of ${most} Ready`
}
