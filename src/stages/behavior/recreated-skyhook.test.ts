import { describe, expect, test } from 'vitest'
import type { Companion } from '../../schemas/annotations.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { install, installedNode, pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { appliedHash } from '../model/package-inputs.ts'

const create = (node: NodeSimulator, configMap: Record<string, string> = {}): void =>
  node.apply('s', { packages: { a: pkg('1.0.0', { configMap }) } })
const reset = (node: NodeSimulator): void =>
  node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
const settle = (node: NodeSimulator): unknown => node.settleFor(5_000)
const remove = (node: NodeSimulator): void => node.remove('s')
/** One decision whose change of the Node is still on its way. */
const decideOnly = (node: NodeSimulator): void => {
  node.arePatchesDelayed = true
  node.step()
  node.arePatchesDelayed = false
}
const restart = (node: NodeSimulator): void => node.restartAgent()

const companion = (node: NodeSimulator): Companion => JSON.parse(node.annotation('journal_s') ?? '{}') as Companion
const reports = (node: NodeSimulator): number => node.events.filter(({ type }) => type === 'foundComplete').length

/** Deletes the Skyhook and creates it again; its package is complete from before. */
function recreatedNode(): NodeSimulator {
  const node = installedNode()
  for (const act of [remove, settle, create, settle]) act(node)
  return node
}

describe('a Skyhook that is created again', () => {
  test('a Skyhook that is created again says once that it was complete before', () => {
    const node = recreatedNode()
    expect([node.executedSteps, node.status(), reports(node), companion(node).foundComplete]).toEqual([
      [],
      'complete',
      1,
      true,
    ])
    node.restartAgent()
    node.settleFor(60_000)
    expect([reports(node), companion(node).foundComplete]).toEqual([1, true])
  })

  test('a node that has uninstalled a deleted Skyhook is not complete for one with the same spec', () => {
    const node = new NodeSimulator()
    const spec = { packages: { a: pkg('1.0.0', { uninstall: { enabled: true } }) } }
    node.apply('s', spec)
    settle(node)
    expect(companion(node).applied).toBe(appliedHash(spec))
    node.requestDeletion('s')
    settle(node)
    expect([node.status(), node.executedSteps.at(-1)]).toEqual(['complete', expect.stringContaining('uninstall')])
    expect(companion(node).applied).not.toBe(appliedHash(spec))
  })

  test('a Skyhook that has never been deleted does not say that it was complete before', () => {
    const node = installedNode()
    expect([reports(node), 'foundComplete' in companion(node)]).toEqual([0, false])
  })

  test('a Skyhook that is created again and has work to do does not say that it was complete before', () => {
    const node = installedNode()
    remove(node)
    settle(node)
    create(node, { x: '1' })
    settle(node)
    expect([node.status(), reports(node), 'foundComplete' in companion(node)]).toEqual(['complete', 0, false])
  })

  test('a Skyhook that is created again stops saying that it was complete before once it works', () => {
    const node = recreatedNode()
    create(node, { x: '1' })
    settle(node)
    expect([node.status(), 'foundComplete' in companion(node)]).toEqual(['complete', false])
  })

  test.each<[string, readonly ((node: NodeSimulator) => unknown)[]]>([
    ['after it was found complete', [remove, settle, create, settle, reset]],
    ['after the agent saw the deletion and the creation at once', [remove, create, settle, reset]],
    ['before the agent saw the deletion and the creation', [remove, create, reset]],
    ['before the agent starts and sees the deletion and the creation', [restart, remove, create, reset]],
    ['between deletion and creation', [remove, reset, create]],
    ['between deletion and creation, before a decision', [remove, reset, decideOnly, create]],
    ['after the deletion was decided', [remove, decideOnly, reset, create]],
    ['after the deletion was decided, and seen before the creation', [remove, decideOnly, reset, settle, create]],
    ['before the deletion', [reset, remove, settle, create]],
    ['twice', [remove, settle, create, settle, reset, settle, remove, settle, create, settle, reset]],
  ])('a reset of a Skyhook that is created again runs its packages: %s', (_, acts) => {
    const node = installedNode()
    for (const act of acts) act(node)
    node.executedSteps.length = 0
    settle(node)
    expect([node.executedSteps, node.status()]).toEqual([install, 'complete'])
  })
})
