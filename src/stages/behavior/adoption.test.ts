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

describe('work that the operator left unfinished', () => {
  const started = (entries: Readonly<Record<string, string>>, status = 'in_progress'): NodeSimulator => {
    const node = new NodeSimulator()
    node.hostFolders = new Set(['s'])
    node.edit((annotations) => {
      const state = Object.entries(entries).map(([version, at]) => {
        const [stage, reached] = at.split('/')
        return [`a|${version}`, { name: 'a', version, image: 'r/pkg', stage, state: reached }]
      })
      annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify(Object.fromEntries(state))
      annotations['skyhook.nvidia.com/status_s'] = status
    })
    return node
  }
  const reboot = { interrupt: { type: 'reboot' } } as const

  test('an interrupt that is due after a finished config stage is made', () => {
    const node = started({ '1.0.0': 'config/complete' })
    node.apply('s', { packages: { a: pkg('1.0.0', reboot) } })
    node.settleFor(30_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
  })

  test('an uninstall under way is continued before the older version is applied', () => {
    const node = started({ '1.0.0': 'uninstall/skipped', '1.1.0': 'uninstall/in_progress' })
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(30_000)
    expect([node.executedSteps[0], node.status()]).toEqual(['a uninstall run.sh', 'complete'])
  })

  test('a config stage under way is repeated, and not the stage before it', () => {
    const node = started({ '1.0.0': 'config/in_progress' })
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(30_000)
    expect([node.executedSteps[0], node.status()]).toEqual(['a config run.sh', 'complete'])
  })

  test('an interrupt that was made is not made again', () => {
    const node = started({ '1.0.0': 'post-interrupt/in_progress' })
    node.apply('s', { packages: { a: pkg('1.0.0', reboot) } })
    node.settleFor(60_000)
    expect([node.executedInterrupts, node.status()]).toEqual([[], 'complete'])
  })

  test('an interrupt that was made is followed by its post-interrupt alone', () => {
    const node = started({ '1.0.0': 'interrupt/complete' })
    node.apply('s', { packages: { a: pkg('1.0.0', reboot) } })
    node.settleFor(60_000)
    expect([node.executedSteps[0], node.executedInterrupts, node.status()]).toEqual([
      'a post-interrupt run.sh',
      [],
      'complete',
    ])
  })

  test('an interrupt under way is made once, and no stage before it runs again', () => {
    const node = started({ '1.0.0': 'interrupt/in_progress' })
    node.apply('s', { packages: { a: pkg('1.0.0', reboot) } })
    node.settleFor(60_000)
    expect([node.executedInterrupts, node.executedSteps[0], node.status()]).toEqual([
      ['reboot'],
      'a post-interrupt run.sh',
      'complete',
    ])
  })

  test.each([
    ['that the operator was taking off', { '1.0.0': 'uninstall/skipped', '1.1.0': 'uninstall/erroring' }, 'erroring'],
    ['that the operator had completed', { '1.1.0': 'config/complete' }, 'complete'],
  ] as const)('an uninstall runs from the image of the version %s', (_, entries, status) => {
    const node = started(entries, status)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(30_000)
    expect([node.executedSteps[0], node.fetchedImages[0], node.state()]).toEqual([
      'a uninstall run.sh',
      'r/pkg:1.1.0',
      ['a|1.0.0: config/complete'],
    ])
  })

  test('an older version is applied once over one that its policy keeps', () => {
    const node = started({ '1.1.0': 'config/complete' }, 'complete')
    node.apply('s', { packages: { a: pkg('1.0.0', { uninstall: { enabled: false } }) } })
    node.settleFor(30_000)
    expect([node.executedSteps.filter((step) => step === 'a apply run.sh').length, node.status()]).toEqual([
      1,
      'complete',
    ])
  })

  test('a package that left the Skyhook is uninstalled, or kept by its policy', () => {
    const node = started({ '1.0.0': 'uninstall/in_progress' })
    node.apply('s', { packages: {} })
    node.settleFor(30_000)
    expect([node.executedSteps[0], node.state(), node.status()]).toEqual(['a uninstall run.sh', [], 'complete'])
    const kept = started({ '1.0.0': 'apply/in_progress' })
    kept.apply(
      's',
      { packages: { a: pkg('1.0.0', { uninstall: { enabled: false } }) } },
      { 'skyhook.nvidia.com/pause': 'true' },
    )
    kept.settleFor(1_000)
    kept.apply('s', { packages: {} })
    kept.settleFor(30_000)
    expect([kept.executedSteps, kept.status()]).toEqual([[], 'complete'])
  })
})
