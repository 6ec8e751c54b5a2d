/**
 * A package rolled out to three nodes, one at a time: what the cluster sees during the rollout, and what stays on Nodes
 * and hosts.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '../../src/schemas/canonical-json.ts'
import { nodeNames, uniqueName, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import type { View } from '../kit/cluster/moments.ts'
import { fixture, publishedState } from '../kit/cluster/skyhooks.ts'
import { overBudget, slotsOf, workWithoutSlot } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const demo = uniqueName('demo')
const greeting = '/etc/skyhook-greeting'
const isComplete = ({ nodes }: View, name: NodeName): boolean =>
  publishedState(nodes.get(name), demo).status === 'complete'

describe('a Skyhook for three nodes with budget 1', () => {
  beforeAll(async () => {
    await cluster.apply(fixture('demo.yaml', demo, cluster.registry), ...nodeNames)
    await cluster.history.eventually('every node is complete', (view) =>
      nodeNames.every((name) => isComplete(view, name)),
    )
    await cluster.history.eventually('every slot is released', (view) => slotsOf(view, demo).length === 0)
  })

  test('a budget of 1 never has two slots held, and each of three nodes holds one', async () => {
    await cluster.history.never('two nodes at once', overBudget(demo, 1))
    const holders = await cluster.history.values((view) => slotsOf(view, demo)[0]?.holder)
    expect(holders.filter((holder) => holder !== undefined).toSorted()).toEqual(nodeNames)
  })

  test('no node works without a slot, and none completes twice', async () => {
    await cluster.history.never('work without a slot', workWithoutSlot(demo))
    for (const name of nodeNames) {
      const statuses = await cluster.history.values(({ nodes }) => publishedState(nodes.get(name), demo).status)
      expect(statuses.filter((status) => status === 'complete')).toHaveLength(1)
      expect(statuses.at(-1)).toBe('complete')
    }
  })

  test.each(nodeNames)('%s shows what tools of the original operator read', (name) => {
    const node = publishedState(cluster.history.now.nodes.get(name), demo)
    const image = `${cluster.registry}/skyhook-packages/shellscript`
    expect(node.stateText).toBe(
      `{"greeting|1.1.0":{"name":"greeting","version":"1.1.0","image":"${image}","stage":"config","state":"complete"}}`,
    )
    expect(node).toMatchObject({
      status: 'complete',
      label: 'complete',
      version: 'v0.15.0',
      notReady: 'False Complete',
      erroring: 'False Not Erroring',
      reason: undefined,
    })
  })

  test.each(nodeNames)('%s shows who wrote its state and for which spec', (name) => {
    const node = cluster.history.now.nodes.get(name)
    const { companion, state, stateText } = publishedState(node, demo)
    expect(companion).toEqual({
      v: 1,
      rev: expect.any(Number) as number,
      sha256: sha256Hex(stateText ?? ''),
      nodeUID: node?.metadata.uid,
      applied: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      completedBy: { uid: expect.stringMatching(/^[0-9a-f-]{36}$/) as string, generation: 1 },
      work: Object.fromEntries(Object.keys(state).map((key) => [key, expect.any(Object) as object])),
    })
  })

  test('a slot names its node in every way that others look for', async () => {
    const slot = await cluster.history.values((view) => slotsOf(view, demo)[0]?.lease)
    const lease = slot.find((one) => one !== undefined)
    const holder = lease?.spec?.holderIdentity ?? ''
    const node = cluster.history.now.nodes.get(holder)
    expect(lease?.metadata).toMatchObject({
      name: expect.stringMatching(new RegExp(`^${demo}-[0-9a-f]{8}\\.slot-0$`)) as string,
      labels: { 'skyhook.nvidia.com/name': demo, 'skyhook.nvidia.com/slot-kind': 'slot' },
      annotations: {
        'skyhook.nvidia.com/packages': 'greeting:1.1.0',
        'skyhook.nvidia.com/boot-id': node?.status?.nodeInfo?.bootID,
        'skyhook.nvidia.com/node-uid': node?.metadata.uid,
      },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: holder, uid: node?.metadata.uid }],
    })
    expect(lease?.spec).toMatchObject({ leaseDurationSeconds: 120 })
  })

  test('Events on each Node report when it started and when it completed', async () => {
    const reasons = (view: View, name: NodeName): (string | undefined)[] =>
      [...view.events.values()]
        .filter(({ involvedObject, message }) => involvedObject?.name === name && message?.includes(demo))
        .map(({ reason }) => reason)
    await cluster.history.eventually('the Events are there', (view) =>
      nodeNames.every((name) =>
        ['SkyhookStarted', 'SkyhookCompleted'].every((reason) => reasons(view, name).includes(reason)),
      ),
    )
  })

  test.each(nodeNames)('the host %s is changed by each step once', async (name) => {
    expect(await cluster.host(name).read(greeting)).toBe(`hello from ${name}\ngreetings are polite\n`)
  })

  test.each(nodeNames)('%s keeps flags, history and logs where people look for them', async (name) => {
    const host = cluster.host(name)
    const folder = `/var/lib/skyhook/${demo}`
    expect(await host.list(`${folder}/flags`)).toEqual([
      'START',
      'apply-check_ALL_CHECKED',
      'check_results',
      'config-check_ALL_CHECKED',
      'shellscript',
    ])
    expect(await host.read(`${folder}/flags/check_results`)).toBe('shellscript_run.sh False')
    const flag = (mode: string): string => `shellscript_run.sh_${Buffer.from(`['${mode}']_[0]`).toString('base64')}`
    expect(await host.list(`${folder}/flags/shellscript/1.1.0`)).toEqual([flag('apply'), flag('config')].sort())
    expect(JSON.parse((await host.read(`${folder}/history/shellscript.json`)) ?? '')).toMatchObject({
      'current-version': '1.1.0',
      history: [{ version: '1.1.0' }],
    })
    const logs = await host.list(`/var/log/skyhook/${demo}/shellscript/1.1.0`)
    expect(logs.filter((log) => log.endsWith('.log'))).toHaveLength(4)
    const written = await Promise.all(logs.map((log) => host.read(`/var/log/skyhook/${demo}/shellscript/1.1.0/${log}`)))
    // config_check is the one that prints
    expect(written.filter((text) => text !== '')).toEqual(['greetings are polite\n'])
  })

  test.each(nodeNames)('%s keeps no unit, no environment file and no result', async (name) => {
    const host = cluster.host(name)
    expect(await host.exec('systemctl', 'list-units', '--all', '--plain', '--no-legend', 'skyhookd-*')).toBe('')
    expect((await host.list('/run/skyhook')).filter((file) => file.endsWith('.env'))).toEqual([])
    expect(await host.list('/var/lib/skyhook/.agent/results')).toEqual([])
  })
})

describe('a Skyhook that is deleted', () => {
  test('a deleted Skyhook removes what it showed on the Nodes and leaves the hosts as they are', async () => {
    await cluster.remove(demo)
    for (const name of nodeNames) expect(await cluster.host(name).read(greeting)).toContain('hello')
  })
})
