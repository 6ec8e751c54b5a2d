/** `kubectl skyhook explain` where the agents themselves are the trouble: none, dead, too old. */
import { expect, test, vi } from 'vitest'
import { agentOn, deleteAgent, startedAgents, withoutAgents } from '../kit/cluster/agents.ts'
import { nodeNames, type NodeName, useCluster } from '../kit/cluster/cluster.ts'
import { explainedWithinMs, explainScene, type ExplainScene } from './explain-scene.ts'
import { patch } from '../kit/cluster/kube.ts'
import type { Pod, View } from '../kit/cluster/moments.ts'
import type { OnTestFinished } from '../kit/cluster/node-locks.ts'
import { usePrintedRemedies } from './printed-remedy.ts'

const cluster = useCluster()
const printed = usePrintedRemedies(cluster)
const daemonSet = '/apis/apps/v1/namespaces/skyhook/daemonsets/skyhookd'
const scene = async (node: NodeName, onTestFinished: OnTestFinished, ...others: NodeName[]): Promise<ExplainScene> =>
  await explainScene(cluster, onTestFinished, node, ...others)

/** Why the container of the pod does not run. */
const waitingReason = (pod: Pod | undefined): string | undefined => {
  const status = pod?.status as { containerStatuses?: { state?: { waiting?: { reason?: string } } }[] } | undefined
  return status?.containerStatuses?.[0]?.state?.waiting?.reason
}

test('a node without an agent is explained by that, whatever it says', async ({ onTestFinished }) => {
  const { apply, explained, differences } = await scene('node-3', onTestFinished)
  await apply({ interruptionBudget: { count: 0 } })
  expect(
    await differences({ cause: 'budget-zero', gate: 'slot', object: 'Skyhook/$name', unblock: /./, command: /./ }),
  ).toEqual({})
  const publishedReason = async (): Promise<unknown> => (await explained()).published?.reason
  await vi.waitFor(async () => expect(await publishedReason()).toBe('WaitingForSlot'), explainedWithinMs)
  await withoutAgents(cluster, async () => {
    expect(await publishedReason()).toBe('WaitingForSlot')
    const expected = { cause: 'no-agent', gate: 'agent', object: 'Node/$node' } as const
    expect(await differences({ ...expected, unblock: /nodeSelector/, command: /get daemonset skyhookd/ })).toEqual({})
    const { gates } = await explained()
    expect(gates.find(({ gate }) => gate === 'slot')?.verdict).toBe('closed')
  })
})

test('an agent that crashes again and again is explained by its pod, and the command shows its last words', async ({
  onTestFinished,
}) => {
  const { node, apply, explained, differences } = await scene('node-2', onTestFinished)
  await apply({ interruptionBudget: { count: 0 } })
  await deleteAgent(cluster, node) // a pod without earlier crashes, after which the kubelet would wait longer
  onTestFinished(async () => await deleteAgent(cluster, node))
  const onHost = async (...command: string[]): Promise<string> => await cluster.host(node).exec(...command)
  // Three seconds are enough for its first lines.
  const kill = 'while sleep 0.5; do pkill -KILL --older 3 -f "skyhookd[.]cjs agent"; done'
  await onHost('systemd-run', '--quiet', '--unit=agent-crashes', 'sh', '-c', kill)
  onTestFinished(async () => void (await onHost('systemctl', 'stop', 'agent-crashes')))
  const backsOff = (view: View): boolean => waitingReason(agentOn(view, node)) === 'CrashLoopBackOff'
  const expected = {
    cause: 'agent-dead',
    gate: 'agent',
    object: `Pod/${agentOn(cluster.history.now, node)?.metadata.name}`,
    message: /does not answer.*CrashLoopBackOff/,
    unblock: /become Ready/,
    command: /describe pod .*logs .* --previous/,
  } as const
  let found: object
  let looks = 0
  // A look during which the kubelet started the agent again shows nothing. It waits twice as long after each crash.
  do {
    await cluster.history.eventually('the kubelet waits before it starts the agent again', backsOff)
    found = await differences(expected)
  } while (++looks < 4 && !backsOff(cluster.history.now))
  expect(found).toEqual({})
  // The kubelet may start it again before this look, too: what is printed then is not about the crash.
  const { command } = await vi.waitFor(async () => {
    const { verdict } = await explained()
    expect(verdict).toMatchObject({ cause: expected.cause, command: expect.stringMatching(expected.command) as string })
    return verdict!
  }, explainedWithinMs)
  expect(await printed.run(node, command)).toContain('agent starting')
}, 400_000)

test('an agent that an update has not reached is compared with the DaemonSet, and one that cannot start holds up the others', async ({
  onTestFinished,
}) => {
  const { name, node, apply, explained, differences } = await scene('node-1', onTestFinished, 'node-2', 'node-3')
  await apply({ interruptionBudget: { count: 0 } }, {}, ...nodeNames)
  const { spec } = await cluster.api.json<DaemonSet>('GET', daemonSet)
  const image = spec.template.spec.containers[0].image
  const next = `${image}-${name}`
  const setImage = async (to: string): Promise<unknown> =>
    await cluster.sandbox.kubectl(['-n', 'skyhook', 'set', 'image', 'daemonset/skyhookd', `agent=${to}`])
  const setStrategy = async (updateStrategy: object): Promise<unknown> =>
    await patch(cluster.api, daemonSet, { spec: { updateStrategy } })
  onTestFinished(async () => {
    await setImage(image)
    await setStrategy(spec.updateStrategy)
    await cluster.history.eventually(
      'every agent is back',
      (view) => startedAgents(view).size === nodeNames.length && stuckNode(view) === undefined,
    )
  })

  await setStrategy({ type: 'OnDelete', rollingUpdate: null })
  await setImage(next)
  const expected = { cause: 'agent-too-old', gate: 'agent' } as const
  const podOn = (of: NodeName): string => agentOn(cluster.history.now, of)?.metadata.name ?? ''
  expect(
    await differences({
      ...expected,
      object: `Pod/${podOn(node)}`,
      message: new RegExp(`runs ${image}, and DaemonSet skyhook/skyhookd has ${next}$`),
      unblock: /replaces it/,
      command: new RegExp(`delete pod ${podOn(node)}`),
    }),
  ).toEqual({})

  await setStrategy({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } })
  const isStuck = (view: View): boolean => stuckNode(view) !== undefined
  await cluster.history.eventually('one agent has the image that does not exist', isStuck, explainedWithinMs)
  const stuck = stuckNode(cluster.history.now) ?? node
  const dead = (await explained(stuck)).verdict
  expect(dead).toMatchObject({ cause: 'agent-dead', objects: [{ kind: 'Pod', name: podOn(stuck) }] })
  expect(dead?.message).toMatch(/ErrImagePull|ImagePullBackOff/)
  const other = nodeNames.find((one) => one !== stuck) ?? node
  expect((await explained(other)).verdict).toMatchObject({
    ...expected,
    objects: [{ name: podOn(other) }, { name: podOn(stuck) }],
    unblock: expect.stringContaining(`${podOn(stuck)} must become Ready`) as string,
    command: `kubectl -n skyhook describe pod ${podOn(stuck)}`,
  })
})

type DaemonSet = {
  readonly spec: {
    readonly updateStrategy: object
    readonly template: { readonly spec: { readonly containers: readonly [{ readonly image: string }] } }
  }
}

/** Where the image of the agent cannot be pulled. */
const stuckNode = (view: View): NodeName | undefined =>
  nodeNames.find((node) => /ImagePull/.test(waitingReason(agentOn(view, node)) ?? ''))
