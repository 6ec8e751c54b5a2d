/** Reboots as interrupts, with agents and hosts that crash at the worst moments. */
import { describe, expect, test } from 'vitest'
import { deleteAgent, killAgent, withoutAgents } from '../kit/cluster/agents.ts'
import { nodeNames, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import { type OnTestFinished, claimNodes } from '../kit/cluster/node-locks.ts'
import { isCompleteOn, isCordoned, serviceStates, uncordonedStates } from '../kit/cluster/node-availability.ts'
import {
  journaled,
  journalOf,
  releaseFileOf,
  manifest,
  onceEach,
  shellscript,
  publishedState,
  withoutTimes,
  type Scripts,
} from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const bootsWithinMs = 90_000

/** A package that reboots, whose scripts keep a journal; `waiting` names the stage that waits for the release file. */
async function rebooting(onTestFinished: OnTestFinished, node: NodeName, waiting?: keyof Scripts) {
  const name = await claimNodes(cluster, onTestFinished, 'reboot', node)
  const host = cluster.host(node)
  const before = await host.bootId()
  const work = shellscript(cluster.registry, journaled(name, waiting), { interrupt: { type: 'reboot' } })
  await cluster.apply(manifest(name, { interruptionBudget: { count: 3 }, packages: { work } }), node)
  return {
    name,
    host,
    before,
    begins: async (mode: keyof Scripts): Promise<void> =>
      await host.awaitLine(journalOf(name), `${mode} begins`, bootsWithinMs),
    release: async (): Promise<void> => await host.write(releaseFileOf(name), ''),
    complete: async (): Promise<void> => {
      await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), bootsWithinMs)
      await cluster.history.eventually('the slot is released', (view) => slotsOf(view, name).length === 0)
    },
    journal: async (): Promise<string[]> => withoutTimes(await host.lines(journalOf(name))),
    /** Boots since the start, including the first. */
    boots: async (): Promise<(string | undefined)[]> => {
      const ids = (await serviceStates(cluster.history, node)).map(({ bootId }) => bootId)
      return [...new Set(ids.slice(ids.indexOf(before)))]
    },
    reboots: (): number[] =>
      Object.values(publishedState(cluster.history.now.nodes.get(node), name).companion?.reboots ?? {}).map(
        ({ done }) => done,
      ),
    /** The state in which it returned to service. */
    back: async () => uncordonedStates(await serviceStates(cluster.history, node)).at(-1),
  }
}

const allSteps = onceEach('apply', 'apply_check', 'config', 'config_check', 'post_interrupt')

describe.concurrent('a reboot happens once, and every step once', () => {
  test.for<[string, NodeName, keyof Scripts, (node: NodeName) => Promise<void>]>([
    ['killed before the reboot', 'node-1', 'config_check', (node) => killAgent(cluster, node)],
    ['deleted after the reboot', 'node-2', 'post_interrupt', (node) => deleteAgent(cluster, node)],
  ])(
    'a reboot and every step happen once when the agent is %s',
    async ([, node, waiting, disturb], { onTestFinished }) => {
      const work = await rebooting(onTestFinished, node, waiting)
      await work.begins(waiting)
      await disturb(node)
      await work.release()
      await work.complete()
      expect(await work.journal()).toEqual(allSteps)
      expect(await work.boots()).toEqual([work.before, await work.host.bootId()])
      expect(work.reboots()).toEqual([1])
      expect(await work.back()).toEqual({ cordoned: false, ready: true, bootId: await work.host.bootId() })
    },
  )

  test('a reboot and every step happen once when the agent is killed while it requests the reboot', async ({
    onTestFinished,
  }) => {
    const node = 'node-3'
    const work = await rebooting(onTestFinished, node)
    await cluster.history.eventually(
      'the reboot is announced',
      (view) => slotsOf(view, work.name)[0]?.phase === 'rebooting',
    )
    // the host may already be down
    await cluster.sandbox.run(['exec', node, '--', 'pkill', '-KILL', '-f', 'skyhookd.cjs agent'])
    await work.complete()
    expect(await work.journal()).toEqual(allSteps)
    expect(await work.boots()).toEqual([work.before, await work.host.bootId()])
    expect(work.reboots()).toEqual([1])
  })
})

test('a host whose power fails during its drain boots, repeats the step, reboots as requested and returns to service', async ({
  onTestFinished,
}) => {
  const node = 'node-1'
  const work = await rebooting(onTestFinished, node, 'config')
  await work.begins('config')
  const slot = slotsOf(cluster.history.now, work.name)[0]?.uid
  await cluster.sandbox.must(['crash', node])
  await cluster.sandbox.must(['start', node])
  await work.release()
  await work.complete()
  expect(await work.journal()).toEqual([
    ...onceEach('apply', 'apply_check'),
    'config begins',
    ...onceEach('config', 'config_check', 'post_interrupt'),
  ])
  expect(await work.boots()).toHaveLength(3) // the first, after the power cut, and after the reboot
  expect(work.reboots()).toEqual([1])
  expect(isCordoned(cluster.history.now.nodes.get(node))).toBe(false)
  const slots = await cluster.history.values((view) => slotsOf(view, work.name)[0]?.uid)
  expect(slots.filter((uid) => uid !== undefined)).toEqual([slot])
  await cluster.history.never('schedulable during the reboot', (view) => {
    const isHeld =
      slotsOf(view, work.name).length > 0 &&
      Object.keys(publishedState(view.nodes.get(node), work.name).state).length > 0
    return (
      isHeld &&
      !isCordoned(view.nodes.get(node)) &&
      publishedState(view.nodes.get(node), work.name).status !== 'complete' &&
      'it was'
    )
  })
})

test('only the node that needs a reboot leaves service, even if its agent dies before it can request it', async ({
  onTestFinished,
}) => {
  const name = await claimNodes(cluster, onTestFinished, 'required', ...nodeNames)
  const before = await Promise.all(nodeNames.map((node) => cluster.host(node).bootId()))
  const seen = await Promise.all(nodeNames.map(async (node) => (await serviceStates(cluster.history, node)).length))
  const scripts = journaled(name, 'config_check')
  const reportLines = [
    'if [ "$(hostname)" = node-2 ]; then needs=true; else needs=false; fi',
    'mkdir -p "$SKYHOOK_ROOT_DIR/status"',
    'printf \'{"v":1,"package":"work","bootId":"%s","message":"","requests":{"run":false,"interrupt":%s}}\' ' +
      '"$(cat /proc/sys/kernel/random/boot_id)" $needs >"$SKYHOOK_ROOT_DIR/status/work.json"',
  ].join('\n')
  const interrupt = { type: 'reboot', when: 'required' } as const
  const work = shellscript(cluster.registry, { ...scripts, config: `${scripts.config}\n${reportLines}` }, { interrupt })
  await cluster.apply(manifest(name, { interruptionBudget: { count: 3 }, packages: { work } }), ...nodeNames)
  for (const node of nodeNames)
    await cluster.host(node).awaitLine(journalOf(name), 'config_check begins', bootsWithinMs)
  await killAgent(cluster, 'node-2')
  for (const node of nodeNames) await cluster.host(node).write(releaseFileOf(name), '')
  await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, nodeNames), bootsWithinMs)

  const after = await Promise.all(nodeNames.map((node) => cluster.host(node).bootId()))
  expect(after.map((bootId, index) => bootId !== before[index])).toEqual([false, true, false])
  for (const [index, node] of nodeNames.entries()) {
    const states = (await serviceStates(cluster.history, node)).slice(seen[index])
    const isRequired = node === 'node-2'
    expect([node, states.some(({ cordoned }) => cordoned)]).toEqual([node, isRequired])
    expect(withoutTimes(await cluster.host(node).lines(journalOf(name)))).toEqual(
      onceEach('apply', 'apply_check', 'config', 'config_check', ...(isRequired ? (['post_interrupt'] as const) : [])),
    )
  }
})

test('an agent continues on a host that booted while no agent ran', async ({ onTestFinished }) => {
  const node = 'node-2'
  const work = await rebooting(onTestFinished, node, 'config_check')
  await work.begins('config_check')
  await withoutAgents(cluster, async () => {
    await work.release()
    await cluster.sandbox.must(['reboot', node])
  })
  await work.complete()
  expect((await work.journal()).filter((line) => line === 'apply begins')).toHaveLength(1)
  expect(await work.boots()).toHaveLength(3) // a boot before the interrupt does not replace the interrupt
  expect(work.reboots()).toEqual([1])
})
