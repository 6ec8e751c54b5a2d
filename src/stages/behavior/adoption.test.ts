import { describe, expect, test } from 'vitest'
import { emptyJournal } from '../../schemas/journal.ts'
import { NodeSimulator } from '../../../test/support/node-simulator/node-simulator.ts'
import { install, installedNode, pkg } from '../../../test/support/node-simulator-dsl.ts'

describe('a host without a journal', () => {
  test('a reinstalled host runs all packages again and reports it', () => {
    const node = installedNode()
    node.journal = emptyJournal('node-uid')
    node.settleFor(5_000)
    expect([node.executedSteps, node.status()]).toEqual([install, 'complete'])
    expect(node.events.some(({ type }) => type === 'startedOver')).toBe(true)
  })

  test('a reinstalled host is not rebooted again for the same spec', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot' } }) } })
    node.settleFor(30_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
    node.journal = emptyJournal('node-uid')
    node.executedSteps.length = 0
    node.settleFor(30_000)
    expect([node.executedInterrupts, node.status(), node.executedSteps.length]).toEqual([['reboot'], 'complete', 6])
  })

  test('a reinstalled host is rebooted again after a reset', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot' } }) } })
    node.settleFor(30_000)
    node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    node.settleFor(30_000)
    expect(node.executedInterrupts).toEqual(['reboot', 'reboot'])
  })

  test('a host on which the operator finished its work continues from there', () => {
    const node = new NodeSimulator()
    node.hostFolders = new Set(['s'])
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/nodeState_s'] =
        '{"a|1.0.0":{"name":"a","version":"1.0.0","image":"r/pkg","stage":"config","state":"complete"}}'
      annotations['skyhook.nvidia.com/status_s'] = 'complete'
    })
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect([node.executedSteps, node.status()]).toEqual([[], 'complete'])
    node.apply('s', { packages: { a: pkg('1.1.0') } })
    node.settleFor(5_000)
    expect(node.executedSteps[0]).toBe('a upgrade run.sh')
  })

  test.each([
    ['beside the current one', '{"a":ENTRY,"a|1.0.0":ENTRY}'],
    ['alone', '{"a":ENTRY}'],
  ])('the agent reads the form from before v0.5, %s', (_, written) => {
    const node = new NodeSimulator()
    node.hostFolders = new Set(['s'])
    node.edit((annotations) => {
      const entry = '{"name":"a","version":"1.0.0","image":"r/pkg","stage":"config","state":"complete"}'
      annotations['skyhook.nvidia.com/nodeState_s'] = written.replaceAll('ENTRY', entry)
    })
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect([node.executedSteps, node.state(), node.status()]).toEqual([[], ['a|1.0.0: config/complete'], 'complete'])
  })
})
