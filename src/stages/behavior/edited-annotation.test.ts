import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { cron, install, installedNode, pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

describe('edits of the annotation', () => {
  test('removing the annotation runs all packages again', () => {
    const node = installedNode()
    node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    node.settleFor(5_000)
    expect(node.executedSteps).toEqual(install)
    expect(node.status()).toBe('complete')
  })

  test('removing an entry restarts that package only', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0'), b: pkg('1.0.0') } })
    node.settleFor(3_000)
    node.executedSteps.length = 0
    node.edit((annotations) => {
      const state = JSON.parse(annotations['skyhook.nvidia.com/nodeState_s'] ?? '{}') as Record<string, unknown>
      delete state['a|1.0.0']
      annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify(state)
    })
    node.settleFor(5_000)
    expect(node.executedSteps).toEqual(install)
  })

  test('setting a stage restarts the package there', () => {
    const node = installedNode()
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/nodeState_s'] = (annotations['skyhook.nvidia.com/nodeState_s'] ?? '').replace(
        '"state":"complete"',
        '"state":"in_progress"',
      )
    })
    node.settleFor(5_000)
    expect(node.executedSteps).toEqual(['a config run.sh', 'a config-check run_check.sh'])
  })

  test('setting the stage of an interrupt repeats the interrupt and what follows it', () => {
    const node = installedNode({ interrupt: cron })
    node.edit((annotations) => {
      const entry = { name: 'a', version: '1.0.0', image: 'r/pkg', stage: 'interrupt', state: 'in_progress' }
      annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify({ 'a|1.0.0': entry })
    })
    node.settleFor(5_000)
    expect(node.executedInterrupts).toEqual(['service cron', 'service cron'])
    expect(node.executedSteps).toEqual(['a post-interrupt run.sh', 'a post-interrupt-check run_check.sh'])
    expect(node.events.filter(({ type }) => type === 'edited')).toHaveLength(1)
  })

  test.each(['no json', '[]', '{"a|1.0.0":{"stage":"dance"}}'])(
    'the edit %s is ignored, reported and reverted',
    (text) => {
      const node = installedNode()
      const published = node.annotation('nodeState_s')
      node.edit((annotations) => {
        annotations['skyhook.nvidia.com/nodeState_s'] = text
      })
      node.settleFor(5_000)
      expect(node.executedSteps).toEqual([])
      expect(node.annotation('nodeState_s')).toBe(published)
      expect(node.events.some(({ type }) => type === 'editIgnored')).toBe(true)
    },
  )

  test('a lost annotation and its companion are restored from the journal', () => {
    const node = installedNode()
    const published = node.annotation('nodeState_s')
    node.edit((annotations) => {
      for (const key of Object.keys(annotations)) delete annotations[key]
    })
    node.settleFor(5_000)
    expect([node.executedSteps, node.annotation('nodeState_s')]).toEqual([[], published])
  })
})
