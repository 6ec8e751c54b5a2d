/** A budget by percent over six nodes, some of which come, go and change their labels on the way. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Transport } from '../../src/kube/transport.ts'
import { sandbox } from '../sandbox/sandbox.ts'
import { record, type History } from './history.ts'
import { adminTransport, patch, paths } from './kube.ts'
import type { View } from './moments.ts'
import { manifest, selectedBy, shellscript, shown } from './skyhooks.ts'
import { overBudget, slotsOf } from './slots.ts'

const name = 'percent'
const nodes = ['node-1', 'node-2', 'node-3', 'node-4', 'node-5', 'node-6'] as const

describe('a budget of 34 percent of six nodes', () => {
  const box = sandbox(`${inject('sandbox')}-six`)
  let api: Transport
  let history: History

  const select = async (node: string, selected: boolean): Promise<unknown> =>
    await patch(api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectedBy]: selected ? name : null } } })
  const isComplete = (view: View, node: string): boolean => shown(view.nodes.get(node), name).status === 'complete'

  beforeAll(async () => {
    await box.must(['up', '6'])
    await box.must(['push', join(import.meta.dirname, '..', 'fixtures', 'packages', 'shellscript'), 'skyhook-packages/shellscript:1.1.0'])
    const { KUBECONFIG = '', REGISTRY = '' } = box.env()
    api = adminTransport(KUBECONFIG)
    history = await record(api)
    for (const node of nodes) await select(node, true)
    const slow = shellscript(REGISTRY, { apply: 'sleep 0.7' }, { interrupt: { type: 'noop' } })
    await api.json('POST', paths.skyhooks, { body: manifest(name, { interruptionBudget: { percent: 34 }, packages: { slow } }) })
    await history.eventually('somebody works', (view) => slotsOf(view, name).length > 0, 60_000)
    await select('node-6', false) // one leaves the selector,
    await api.json('DELETE', `${paths.nodes}/node-5`) // one leaves the cluster,
    await select('node-6', true) // and one comes
  }, 300_000)

  afterAll(async () => {
    history?.stop()
    api?.close()
    await box.run(['down'])
  }, 60_000)

  test('reaches every node that is left', async () => {
    await history.eventually(
      'all are complete',
      (view) => ['node-1', 'node-2', 'node-3', 'node-4', 'node-6'].every((node) => isComplete(view, node)),
      90_000,
    )
    await history.eventually('every slot was given back', (view) => slotsOf(view, name).length === 0)
  })

  test('never has more than two out, cordoned or holding a slot', async () => {
    await history.never('more than two slots', overBudget(name, 2))
    expect(await history.first((view) => slotsOf(view, name).length === 2)).toBeDefined() // and the budget is used
    await history.never('more than two cordoned', (moment) => {
      const out = [...moment.nodes.values()].filter(({ spec }) => spec?.unschedulable === true).map(({ metadata }) => metadata.name)
      return out.length > 2 ? out.join(', ') : undefined
    })
  })

  test('leaves no cordon behind', () => {
    expect([...history.now.nodes.values()].filter(({ spec }) => spec?.unschedulable === true)).toEqual([])
  })
})
