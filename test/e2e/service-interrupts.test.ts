/** Services that are restarted as interrupts: those that the agent depends on, and those that do not come back. */
import { describe, expect, test } from 'vitest'
import type { NodeStateEntry } from '../../src/schemas/annotations.ts'
import type { Interrupt, PackageSpec } from '../../src/schemas/skyhook.ts'
import { startedAgents } from '../kit/cluster/agents.ts'
import { uniqueName, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import { lockNodes, type OnTestFinished, claimNodes } from '../kit/cluster/node-locks.ts'
import {
  isCompleteOn,
  isCordoned,
  serviceStates,
  hasEvent,
  uncordonedStates,
} from '../kit/cluster/node-availability.ts'
import { journalOf, manifest, shellscript, publishedState } from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const restarting = (...services: string[]): Interrupt => ({ type: 'service', services })
const pkg = (interrupt: Interrupt, scripts: Parameters<typeof shellscript>[1] = {}): PackageSpec =>
  shellscript(cluster.registry, scripts, { interrupt })

const isInterrupted = (entry: NodeStateEntry | undefined): boolean =>
  entry?.stage === 'post-interrupt' && entry.state === 'complete'

async function apply(
  node: NodeName,
  packages: Record<string, PackageSpec>,
  onTestFinished: OnTestFinished,
): Promise<string> {
  const name = await claimNodes(cluster, onTestFinished, 'service', node)
  await cluster.apply(manifest(name, { packages }), node)
  return name
}

/** When systemd last saw it started, in whole seconds, as the host says. */
async function startedAtMs(node: NodeName, unit: string): Promise<number> {
  const text = await cluster
    .host(node)
    .exec('systemctl', 'show', '-P', 'ActiveEnterTimestamp', '--timestamp=unix', unit)
  return Number(text.trim().slice(1)) * 1_000
}

/** How often systemd started it in this boot. */
async function startsOf(node: NodeName, unit: string): Promise<number> {
  const messages = await cluster.host(node).exec('journalctl', '-b', `UNIT=${unit}`, '-o', 'cat')
  return messages.split('\n').filter((line) => line.startsWith('Started ')).length
}

describe.concurrent('a service that the agent depends on', () => {
  test.for<[string, NodeName, number]>([
    ['dbus.service', 'node-1', 0],
    ['containerd.service', 'node-2', 10_000],
    ['kubelet.service', 'node-3', 10_000],
  ])(
    'an interrupt restarts %s once, and the agent, which depends on it, confirms the restart',
    async ([unit, node, readyForMs], { onTestFinished }) => {
      await lockNodes(onTestFinished, node)
      const before = await startsOf(node, unit)
      const agent = startedAgents(cluster.history.now).get(node)
      const name = uniqueName('service')
      onTestFinished(async () => await cluster.remove(name))
      const after = `echo confirmed >>${journalOf(name)}`
      await cluster.apply(
        manifest(name, { packages: { work: pkg(restarting(unit), { post_interrupt: after }) } }),
        node,
      )
      await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), 60_000)
      expect(await startsOf(node, unit)).toBe(before + 1)
      await cluster.history.eventually('the Event is reported', (view) =>
        hasEvent(view, node, 'InterruptCompleted', name, 'service'),
      )
      expect(uncordonedStates(await serviceStates(cluster.history, node)).at(-1)).toMatchObject({ ready: true })
      expect(await cluster.host(node).lines(journalOf(name))).toEqual(['confirmed'])
      const uncordoned = await cluster.history.first(({ nodes }) =>
        isCompleteOn({ ...cluster.history.now, nodes }, name, [node]),
      )
      // Ready must hold after these restarts
      expect(uncordoned?.atMs).toBeGreaterThan((await startedAtMs(node, unit)) + readyForMs)
      expect(startedAgents(cluster.history.now).get(node)).toBe(agent)
    },
  )
})

describe.concurrent('a service that cannot be restarted', () => {
  const mayfly = (unit: string): string =>
    `printf '[Service]\\nExecStart=/bin/sh -c "sleep 0.1; exit 7"\\n' >/etc/systemd/system/${unit}`

  test('a service that dies right after its start fails its package with how it ended, and completes once repaired', async ({
    onTestFinished,
  }) => {
    const node = 'node-1'
    const unit = `${uniqueName('mayfly')}.service`
    const name = await apply(
      node,
      { fragile: pkg(restarting(unit), { apply: mayfly(unit) }), sound: pkg(restarting('foobar')) },
      onTestFinished,
    )
    await cluster.history.eventually(
      'the reason names it',
      ({ nodes }) => publishedState(nodes.get(node), name).reason?.reason === 'StepFailed',
    )
    const now = publishedState(cluster.history.now.nodes.get(node), name)
    expect(now.reason?.message).toMatch(new RegExp(`fragile 1\\.1\\.0: ${unit}: .*exit-code, exited 7`))
    await cluster.history.eventually('the other package is complete', ({ nodes }) =>
      isInterrupted(publishedState(nodes.get(node), name).state['sound|1.1.0']),
    )
    expect(publishedState(cluster.history.now.nodes.get(node), name).state).toMatchObject({
      'fragile|1.1.0': { stage: 'interrupt', state: 'erroring' },
      'sound|1.1.0': { stage: 'post-interrupt', state: 'complete' },
    })
    expect(isCordoned(cluster.history.now.nodes.get(node))).toBe(true)
    await cluster.host(node).write(`/etc/systemd/system/${unit}`, '[Service]\nExecStart=/bin/sleep infinity\n')
    await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), 30_000)
    await cluster.host(node).exec('systemctl', 'stop', unit)
  })

  test('a missing service fails only its package, which names it, and completes once corrected', async ({
    onTestFinished,
  }) => {
    const node = 'node-2'
    const name = await apply(
      node,
      { wrong: pkg(restarting('foobra')), right: pkg(restarting('foobar')) },
      onTestFinished,
    )
    await cluster.history.eventually(
      'the reason names it',
      ({ nodes }) => publishedState(nodes.get(node), name).reason?.message.includes('foobra') === true,
    )
    expect(publishedState(cluster.history.now.nodes.get(node), name).reason).toMatchObject({
      reason: 'StepFailed',
      message: expect.stringMatching(
        /package wrong 1\.1\.0: foobra\.service: .*not found.*: correct the services of the package's interrupt/i,
      ) as string,
    })
    await cluster.history.eventually('the other package is complete', ({ nodes }) =>
      isInterrupted(publishedState(nodes.get(node), name).state['right|1.1.0']),
    )
    expect(publishedState(cluster.history.now.nodes.get(node), name)).toMatchObject({
      status: 'erroring',
      state: {
        'wrong|1.1.0': { stage: 'interrupt', state: 'erroring' },
        'right|1.1.0': { stage: 'post-interrupt', state: 'complete' },
      },
    })
    expect(slotsOf(cluster.history.now, name)).toHaveLength(1)
    await cluster.edit(name, { packages: { wrong: { interrupt: restarting('foobar') } } })
    await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), 20_000)
  })
})
