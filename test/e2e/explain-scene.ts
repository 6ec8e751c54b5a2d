/** One Skyhook on one node that is held up, and what `kubectl skyhook explain` has to say of it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Cause } from '../../src/cli/reason/explain/finding.ts'
import type { NodeExplanation } from '../../src/cli/reason/explain/explain-node.ts'
import { reasonKey, reasonsKey } from '../../src/schemas/annotations.ts'
import type { GateName } from '../../src/schemas/catalogue/reason-codes.ts'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { commandLine } from '../kit/tool/command-line.ts'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { withFrozenAgent } from '../kit/cluster/agents.ts'
import type { Cluster, NodeName } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import { type OnTestFinished, claimNodes } from '../kit/cluster/node-locks.ts'
import { manifest, shellscript } from '../kit/cluster/skyhooks.ts'
import { createWorkloads, type Workloads } from '../kit/cluster/workloads.ts'

/** The agent's own reaction is bounded elsewhere; here pods are started and images asked for. */
export const explainedWithinMs = 45_000
const pollMs = 500
/** Events follow later than reasons, within 20 s of an agent that runs: how long it does so between two looks. */
const thawedMs = [2_000, 4_000, 6_000, 8_000]

export type Expected = {
  readonly cause: Cause
  readonly gate: GateName
  /** `Kind/name` of an object that the finding is about; `$node` and `$name` stand for the scene's. */
  readonly object: string
  /** Parts of what would open the gate, and of the command. */
  readonly unblock: RegExp
  readonly command: RegExp
  readonly message?: RegExp
}

export type ExplainScene = {
  readonly name: string
  readonly node: NodeName
  /** A Skyhook on the scene's node, or on these. */
  readonly apply: (
    spec?: SkyhookSpec,
    annotations?: Record<string, string>,
    ...nodes: readonly NodeName[]
  ) => Promise<void>
  readonly editNode: (body: object, undo: object) => Promise<void>
  readonly workloads: () => Promise<Workloads>
  /** What the tool says of a node now, by default of the scene's. */
  readonly explained: (node?: NodeName) => Promise<NodeExplanation>
  /**
   * What differs from the expected explanation, once it has its cause or the time is over: with the reasons that the
   * node publishes, and while these are deleted, stale and wrong.
   */
  readonly differences: (expected: Expected) => Promise<object>
}

/** With the nodes locked for this test, and the Skyhook removed after it. */
export async function explainScene(
  cluster: Cluster,
  onTestFinished: OnTestFinished,
  node: NodeName,
  ...others: readonly NodeName[]
): Promise<ExplainScene> {
  const name = await claimNodes(cluster, onTestFinished, 'explained', node, ...others)
  const fill = (text: string): string => text.replace('$node', node).replace('$name', name)
  const tool = async (line: string): Promise<string> => {
    const { code, stdout, stderr } = await commandLine({ client: cluster.api, clock: systemClock }).run(line)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }

  const explained = async (of: NodeName = node): Promise<NodeExplanation> => {
    const { items } = JSON.parse(await tool(`explain ${name} ${of} -n skyhook -o json`)) as { items: [NodeExplanation] }
    return items[0]
  }

  const differencesNow = async ({ cause, gate, object, unblock, command, message = /./ }: Expected) => {
    let found = await explained()
    for (const endMs = Date.now() + explainedWithinMs; found.verdict?.cause !== cause; await sleep(pollMs)) {
      found = await explained()
      if (Date.now() > endMs) break
    }
    const { verdict } = found
    if (verdict?.cause !== cause) return { expected: cause, found }
    const objects = namesOf(verdict)
    return {
      ...(verdict.gate !== gate && { gate: verdict.gate }),
      ...(!objects.includes(fill(object)) && { objects }),
      ...(!message.test(verdict.message) && { message: verdict.message }),
      ...(!unblock.test(verdict.unblock) && { unblock: verdict.unblock }),
      ...(!command.test(verdict.command) && { command: verdict.command }),
    }
  }

  /** The verdicts that another published reason changes. */
  const misled = async ({ cause, object }: Expected): Promise<object> => {
    const found: Record<string, unknown> = {}
    for (const [what, annotations] of Object.entries(distortions(name))) {
      await patch(cluster.api, `${paths.nodes}/${node}`, { metadata: { annotations } })
      const { verdict, state } = await explained()
      const isSame = verdict?.cause === cause && namesOf(verdict).includes(fill(object))
      if (!isSame) found[what] = verdict ?? state
    }
    return found
  }

  return {
    name,
    node,
    async apply(spec = {}, annotations = {}, ...nodes) {
      const work = shellscript(cluster.registry, {})
      const made = manifest(name, { interruptionBudget: { count: 1 }, packages: { work }, ...spec })
      await cluster.apply({ ...made, metadata: { name, annotations } }, ...(nodes.length === 0 ? [node] : nodes))
    },
    async editNode(body, undo) {
      const path = `${paths.nodes}/${node}`
      onTestFinished(async () => void (await patch(cluster.api, path, undo)))
      await patch(cluster.api, path, body)
    },
    async workloads() {
      const made = await createWorkloads(cluster, name)
      onTestFinished(async () => await made.remove())
      return made
    },
    explained,
    async differences(expected) {
      const asPublished = await differencesNow(expected)
      if (Object.keys(asPublished).length > 0) return asPublished
      // a running agent would put its reasons back at once
      const look = async (): Promise<object> =>
        isWithoutAgent.has(expected.cause)
          ? await misled(expected)
          : await withFrozenAgent(cluster, node, async () => await misled(expected))
      let found = await look()
      for (const ms of thawedMs) {
        if (Object.keys(found).length === 0) break
        await sleep(ms)
        found = await look()
      }
      return found
    },
  }
}

const isWithoutAgent: ReadonlySet<Cause> = new Set(['no-agent', 'agent-dead'])

const namesOf = ({ objects }: NonNullable<NodeExplanation['verdict']>): readonly string[] =>
  objects.map(({ kind, name }) => `${kind}/${name}`)

const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString()

/** What somebody may have made of the reasons of a Skyhook on a Node. */
function distortions(name: string): Readonly<Record<string, Readonly<Record<string, string | null>>>> {
  const reasonOf = (reason: string, message: string, minutes: number): Record<string, string | null> => ({
    [reasonKey(name)]: JSON.stringify({ reason, message, since: minutesAgo(minutes) }),
    [reasonsKey(name)]: null,
  })
  return {
    deleted: { [reasonKey(name)]: null, [reasonsKey(name)]: null },
    stale: reasonOf('WaitingForPriority', 'Skyhook z comes first', 50),
    'wrong about settings': reasonOf('Disabled', 'the Skyhook is disabled', 5),
    'wrong about the host': reasonOf('HostUnreachable', 'no bus', 5),
  }
}
