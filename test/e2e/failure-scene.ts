/** One Skyhook on one node that fails, and what the Node has to show of it. */
import { join } from 'node:path'
import type { PackageSpec } from '../../src/schemas/skyhook.ts'
import { fixturePackages, type Cluster, type NodeName } from '../kit/cluster/cluster.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn, isCordoned } from '../kit/cluster/node-availability.ts'
import { type OnTestFinished, claimNodes } from '../kit/cluster/node-locks.ts'
import { manifest, publishedState, shellscript, type Scripts } from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const shownWithinMs = 10_000
/** The longest pause of the failures here, and a reboot. */
const endsWithinMs = 60_000
/** What a node without trouble shows meanwhile. */
const harmless = new Set(['', 'Preparing', 'WaitingForSlot', 'DrainBlocked', 'RebootPending', 'NodeNotReady'])

export type Scene = {
  readonly name: string
  readonly node: NodeName
  /** A Skyhook with this package, on the node. */
  apply(work: PackageSpec): Promise<void>
  edit(work: object): Promise<void>
  /** Within ten seconds from now. Returns what the Node says then. */
  shows(
    reason: string,
    ...fragments: readonly string[]
  ): Promise<{ readonly status?: string; readonly message: string }>
  /** The Node says the same after another attempt failed. */
  showsAgain(reason: string, restarts: number): Promise<void>
  /** Nothing of this Skyhook ever held a slot. */
  heldNoSlot(): Promise<void>
  holdsSlot(): Promise<void>
  /** Complete, in service, without a reason and without a slot. Returns the troubles that the Node showed till then. */
  ends(): Promise<readonly string[]>
}

/** With the node locked for this test, and the Skyhook removed after it. */
export async function failureScene(cluster: Cluster, node: NodeName, onTestFinished: OnTestFinished): Promise<Scene> {
  const { history } = cluster
  const name = await claimNodes(cluster, onTestFinished, 'endless', node)
  const now = ({ nodes }: View) => publishedState(nodes.get(node), name)
  return {
    name,
    node,
    apply: async (work) => {
      await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages: { work } }), node)
    },
    edit: async (work) => void (await cluster.edit(name, { packages: { work } })),
    shows: async (reason, ...fragments) => {
      const isShown = (view: View): boolean => {
        const published = now(view).reason
        return published?.reason === reason && fragments.every((words) => published.message.includes(words))
      }
      await history.eventually(`${node} shows ${reason}: ${fragments.join(', ')}`, isShown, shownWithinMs)
      const { status, reason: shown } = now(history.now)
      return { ...(status !== undefined && { status }), message: shown?.message ?? '' }
    },
    showsAgain: async (reason, restarts) => {
      const isRepeated = (view: View): boolean =>
        now(view).reason?.reason === reason &&
        Object.values(now(view).state).some((entry) => (entry.restarts ?? 0) >= restarts)
      await history.eventually(`${node} shows ${reason} after ${restarts} attempts`, isRepeated)
    },
    heldNoSlot: async () =>
      await history.never('a slot for nothing', (view) => slotsOf(view, name).length > 0 && 'a slot is held'),
    holdsSlot: async () =>
      void (await history.eventually('the slot is held', (view) => slotsOf(view, name)[0]?.holder === node)),
    ends: async () => {
      await history.eventually(
        'it is complete',
        (view) => isCompleteOn(view, name, [node]) && now(view).reason === undefined,
        endsWithinMs,
      )
      await history.eventually(
        'the slot is released and the node in service',
        (view) => slotsOf(view, name).length === 0 && !isCordoned(view.nodes.get(node)),
      )
      const reasons = await history.values((view) => now(view).reason?.reason ?? '')
      return [...new Set(reasons)].filter((reason) => !harmless.has(reason))
    },
  }
}

type Packages = {
  readonly script: (scripts: Scripts, more?: Partial<PackageSpec>) => PackageSpec
  /** Nothing is wrong with it. */
  readonly valid: () => PackageSpec
  /** Version 1.0.0 of this repository. */
  readonly image: (repository: string) => PackageSpec
  /** A folder of the fixtures; returns the reference. */
  readonly push: (folder: string, to: string) => Promise<string>
}

export const packagesIn = (cluster: Cluster): Packages => {
  const script: Packages['script'] = (scripts, more) => shellscript(cluster.registry, scripts, more)
  return {
    script,
    valid: () => script({ apply: 'true' }),
    image: (repository) => ({ version: '1.0.0', image: `${cluster.registry}/${repository}` }),
    push: async (folder, to) => await cluster.sandbox.must(['push', join(fixturePackages, folder), to]),
  }
}

/** A unit on the host until the test ends. */
export async function startUnit(
  cluster: Cluster,
  node: NodeName,
  unit: string,
  onTestFinished: OnTestFinished,
  ...command: string[]
): Promise<() => Promise<void>> {
  await cluster.host(node).exec('systemd-run', '--quiet', `--unit=${unit}`, ...command)
  const stop = async (): Promise<void> => {
    await cluster.host(node).exec('sh', '-c', `systemctl stop ${unit} || true`)
  }
  onTestFinished(stop)
  return stop
}
