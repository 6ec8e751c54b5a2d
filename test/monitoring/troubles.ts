/**
 * The troubles that alerts and dashboard are for, as one play: nodes with a part each, and what happens when. It is the
 * same on simulated and on real hosts, so that one recording can replace the other.
 */
import { resetBatchesKey } from '../../src/schemas/annotations.ts'
import type { DeploymentPolicySpec } from '../../src/schemas/deployment-policy.ts'
import { isObject, parseJson } from '../../src/schemas/json.ts'
import type { Interrupt, PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'

/** What a cluster has to offer. Each resolves when the request has been made. */
export type Actors = {
  /** A package whose scripts do nothing, and fail where `setFailing` says so. */
  readonly packageOf: (version: string, interrupt?: Interrupt) => PackageSpec
  createPolicy(name: string, spec: DeploymentPolicySpec): Promise<void>
  createSkyhook(name: string, spec: SkyhookSpec): Promise<void>
  /** A merge patch. */
  patchSkyhook(name: string, patch: object): Promise<void>
  deleteSkyhook(name: string): Promise<void>
  labelNode(node: string, labels: Readonly<Record<string, string | null>>): Promise<void>
  /** Sets the stage of the package on the Node to its interrupt, as a person does who wants it again. */
  requestInterrupt(node: string, skyhook: string): Promise<void>
  /** Scripts of this mode fail on the host from now on; undefined: none does. */
  setFailing(node: string, mode: Mode | undefined): Promise<void>
  /** Places a pod on each node, and disruption budgets that never let them go. */
  guardPods(nodes: readonly string[]): Promise<void>
  /** Removes these disruption budgets. */
  dropGuard(): Promise<void>
  /** No agent runs on these nodes until `startAgents`. */
  stopAgents(nodes: readonly string[]): Promise<void>
  startAgents(nodes: readonly string[]): Promise<void>
}

export type Mode = 'apply' | 'post-interrupt-check'

/** The Skyhook of each part, and how many nodes it has. */
export const parts = {
  /** Completes in two batches, and is deleted later. */
  rollout: 3,
  /** The first node fails and holds the only slot; the other waits. */
  failing: 2,
  /** The first batch fails, and the policy stops. */
  stopped: 2,
  /** Somebody asks for its reboot again and again. */
  looping: 1,
  /** A pod does not leave. */
  blocked: 1,
  /** Its agent goes away while the node is cordoned and holds a slot. */
  gone: 1,
  /** Waits for a Secret that does not exist. */
  lacking: 1,
} as const
export type Part = keyof typeof parts

export const packageName = 'tool'
export const partLabel = 'example.com/part'
const reboot = { type: 'reboot' } as const

/** Nodes by part, in the order of the names. Throws if they are too few. */
function castOf(names: readonly string[]): Readonly<Record<Part, readonly string[]>> {
  const { nodeCount } = wholePlay
  if (names.length < nodeCount) throw new Error(`the play needs ${nodeCount} nodes, and there are ${names.length}`)
  const left = [...names].sort()
  const take = (part: Part): readonly string[] => left.splice(0, parts[part])
  return {
    rollout: take('rollout'),
    failing: take('failing'),
    stopped: take('stopped'),
    looping: take('looping'),
    blocked: take('blocked'),
    gone: take('gone'),
    lacking: take('lacking'),
  }
}

/** What is recorded: scenes in the order of their times. */
export type Play = {
  /** Name of the folder of its recording. */
  readonly name: string
  readonly nodeCount: number
  readonly scenesOf: (nodes: readonly string[]) => readonly Scene[]
  readonly endsAtMinute: number
  readonly scrapeIntervalMs: number
}

export type Scene = {
  readonly atMinute: number
  readonly title: string
  readonly play: (actors: Actors) => Promise<void>
}

/** In the order of their times. An alert that waits for half an hour is why it takes so long. */
function scenesOf(cast: ReturnType<typeof castOf>): readonly Scene[] {
  const failing = [...cast.failing, ...cast.stopped]
  const [looping = ''] = cast.looping
  const [blocked = ''] = cast.blocked
  const [gone = ''] = cast.gone
  const everyNode = Object.values(cast).flat()
  const specOf = (part: Part, version: PackageSpec, rest: Partial<SkyhookSpec> = {}): SkyhookSpec => ({
    nodeSelectors: { matchLabels: { [partLabel]: part } },
    packages: { [packageName]: version },
    ...rest,
  })
  const again: Scene[] = [2, 4, 6].map((atMinute) => ({
    atMinute,
    title: 'somebody asks for the reboot again',
    play: (actors) => actors.requestInterrupt(looping, 'looping'),
  }))
  const scenes: readonly Scene[] = [
    {
      atMinute: 0.25,
      title: 'the nodes get their parts',
      async play(actors) {
        for (const [part, nodes] of Object.entries(cast))
          for (const node of nodes) await actors.labelNode(node, { [partLabel]: part })
        await actors.guardPods([blocked, gone])
      },
    },
    {
      atMinute: 0.75, // the disruption budgets have been counted
      title: 'all rollouts start',
      async play(actors) {
        const { packageOf } = actors
        for (const node of failing) await actors.setFailing(node, 'apply')
        await actors.setFailing(looping, 'post-interrupt-check')
        await actors.createPolicy('two-batches', {
          default: { budget: { count: 2 }, strategy: { linear: { initialBatch: 1, delta: 1 } } },
        })
        await actors.createPolicy('one-try', {
          default: { budget: { count: 1 }, strategy: { fixed: { initialBatch: 1, failureThreshold: 1 } } },
        })
        await actors.createSkyhook(
          'rollout',
          specOf('rollout', packageOf('1.0.0'), { deploymentPolicy: 'two-batches' }),
        )
        await actors.createSkyhook(
          'failing',
          specOf('failing', packageOf('1.0.0'), { interruptionBudget: { count: 1 } }),
        )
        await actors.createSkyhook('stopped', specOf('stopped', packageOf('1.0.0'), { deploymentPolicy: 'one-try' }))
        await actors.createSkyhook('looping', specOf('looping', packageOf('1.0.0', reboot)))
        await actors.createSkyhook('blocked', specOf('blocked', packageOf('1.0.0', reboot)))
        await actors.createSkyhook('gone', specOf('gone', packageOf('1.0.0', reboot)))
        const token = { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'absent', key: 'token' } } }
        await actors.createSkyhook('lacking', specOf('lacking', { ...packageOf('1.0.0'), env: [token] }))
      },
    },
    ...again,
    { atMinute: 3, title: 'an agent goes away at work', play: (actors) => actors.stopAgents([gone]) },
    {
      atMinute: 30,
      title: 'the Skyhook lets go of the node without an agent',
      play: (actors) => actors.labelNode(gone, { [partLabel]: null }),
    },
    {
      atMinute: 36,
      title: 'the packages are corrected',
      async play(actors) {
        for (const node of [...failing, looping]) await actors.setFailing(node, undefined)
        await actors.patchSkyhook('stopped', { metadata: { annotations: { [resetBatchesKey]: 'corrected' } } })
        await actors.patchSkyhook('lacking', { spec: { packages: { [packageName]: { env: null } } } })
        await actors.patchSkyhook('looping', {
          spec: { packages: { [packageName]: actors.packageOf('1.1.0', reboot) } },
        })
      },
    },
    { atMinute: 40, title: 'the pod may leave', play: (actors) => actors.dropGuard() },
    { atMinute: 50, title: 'the agent comes back', play: (actors) => actors.startAgents([gone]) },
    { atMinute: 56, title: 'a Skyhook is deleted', play: (actors) => actors.deleteSkyhook('rollout') },
    { atMinute: 58, title: 'all agents go away', play: (actors) => actors.stopAgents(everyNode) },
    { atMinute: 72, title: 'all agents come back', play: (actors) => actors.startAgents(everyNode) },
  ]
  return scenes.toSorted((one, other) => one.atMinute - other.atMinute)
}

/** Every alert fires in it. */
export const wholePlay: Play = {
  name: 'real-hosts',
  nodeCount: Object.values(parts).reduce((sum, count) => sum + count, 0),
  scenesOf: (nodes) => scenesOf(castOf(nodes)),
  endsAtMinute: 76,
  scrapeIntervalMs: 30_000, // as Prometheus scrapes by default in many clusters
}

/** Whether the package has failed, by the published state of a node. */
export function isErroring(stateText: string): boolean {
  const state = parseJson(stateText)
  const entries = isObject(state) ? Object.values(state) : []
  return entries.some((entry) => isObject(entry) && entry['name'] === packageName && entry['state'] === 'erroring')
}

/** The published state of a node with its package set back to its interrupt. Throws if it has none. */
export function withInterrupt(stateText: string): string {
  const state = parseJson(stateText)
  const entries = isObject(state) ? Object.entries(state) : []
  const changed = entries.map(([key, entry]) =>
    isObject(entry) && entry['name'] === packageName
      ? [key, { ...entry, stage: 'interrupt', state: 'in_progress' }]
      : [key, entry],
  )
  if (changed.length === 0) throw new Error(`no package has a state: ${JSON.stringify(stateText)}`)
  return JSON.stringify(Object.fromEntries(changed))
}
