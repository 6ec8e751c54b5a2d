import { describe, expect, test } from 'vitest'
import { emptyJournal } from '../../schemas/journal.ts'
import type { Pod } from '../model/pods.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { install, installedNode, pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

/** A node on which the operator has left entries of package a, by version: `<stage>/<state>`. */
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

test('a configuration that the operator has not rolled out is rolled out, with its interrupt', () => {
  const node = started({ '1.0.0': 'config/complete' }, 'complete')
  node.rolledOutConfigs = new Map([['s', { a: { 'a.conf': 'old', 'b.conf': 'same' } }]])
  const configMap = { 'a.conf': 'new', 'b.conf': 'same' }
  const configInterrupts = { 'a.conf': { type: 'service', services: ['x'] } } as const
  node.apply('s', { packages: { a: pkg('1.0.0', { configMap, configInterrupts }) } })
  node.settleFor(30_000)
  expect([node.executedSteps[0], node.executedInterrupts, node.status()]).toEqual([
    'a config run.sh',
    ['service x'],
    'complete',
  ])
})

describe('package pods of the operator', () => {
  const packagePod = (name: string, change: Partial<Pod['status']> = {}): Pod => ({
    metadata: {
      name,
      namespace: 'skyhook',
      uid: `uid-${name}`,
      resourceVersion: '1',
      labels: { 'skyhook.nvidia.com/name': 's' },
      annotations: { 'skyhook.nvidia.com/package': '{}' },
    },
    status: { phase: 'Pending', initContainerStatuses: [{ state: {} }], ...change },
  })
  const ended = { phase: 'Running', initContainerStatuses: [{ state: { terminated: { exitCode: 0 } } }] }
  const failing = {
    initContainerStatuses: [{ restartCount: 2, state: { waiting: { reason: 'CrashLoopBackOff' } } }],
  }
  const found = (pods: Pod[], entry = '1.0.0'): NodeSimulator => {
    const node = started({ [entry]: 'config/in_progress' })
    node.pods = pods
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    return node
  }

  test.each([
    ['is at work', {}, /^package pod skyhook\/p of the operator is at work: wait until it has ended, then delete it$/],
    ['fails', failing, /fails again and again: delete it$/],
    ['has ended, but would run again after a reboot', ended, /has nothing left to do: delete it, because/],
  ] as const)('nothing starts beside a pod that %s', (_, status, message) => {
    const node = found([packagePod('p', status)])
    node.settleFor(30_000)
    expect([node.executedSteps, node.slots, node.fetchedImages, node.status()]).toEqual([[], [], [], 'waiting'])
    expect([node.reason(), node.lastReasons.get('s')?.message]).toEqual([
      'Takeover',
      expect.stringMatching(message) as string,
    ])
    node.pods = []
    node.settleFor(30_000)
    expect([node.executedSteps[0], node.status()]).toEqual(['a config run.sh', 'complete'])
  })

  test.each(['Succeeded', 'Failed'])('a pod whose phase is %s does not block work', (phase) => {
    const node = found([packagePod('p', { phase })])
    node.settleFor(30_000)
    expect(node.status()).toBe('complete')
  })

  test('the pod at work is named first, and the others are counted', () => {
    const node = found([packagePod('a', ended), packagePod('c'), packagePod('b', failing)])
    node.settleFor(5_000)
    expect(node.lastReasons.get('s')?.message).toMatch(/^package pod skyhook\/c .* \(and 2 more on this node\)$/)
  })

  test('nothing starts while the pods of the node are not known', () => {
    const node = found([])
    node.arePodsUnknown = true
    node.settleFor(30_000)
    expect([node.executedSteps, node.reason()]).toEqual([[], 'Takeover'])
    node.arePodsUnknown = false
    expect(node.settleFor(30_000).status()).toBe('complete')
  })

  test('another Skyhook waits for the package pods too', () => {
    const node = found([packagePod('p')])
    node.apply('first', { priority: 1, packages: { b: pkg('1.0.0') } })
    node.settleFor(30_000)
    expect([node.executedSteps, node.reason('first')]).toEqual([[], 'Takeover'])
  })

  test('other pods, and work that is complete, keep nobody waiting', () => {
    const node = found([{ ...packagePod('p'), metadata: { ...packagePod('p').metadata, annotations: {} } }])
    expect(node.settleFor(30_000).status()).toBe('complete')
    const complete = started({ '1.0.0': 'config/complete' }, 'complete')
    complete.pods = [packagePod('p', ended)]
    complete.apply('s', { packages: { a: pkg('1.0.0') } })
    complete.settleFor(5_000)
    expect([complete.status(), complete.podWatch]).toEqual(['complete', 'no'])
  })

  test('pods are followed until work starts, and not after it', () => {
    const node = found([])
    node.areSlotsGranted = false
    node.settleFor(5_000)
    expect(node.podWatch).toBe('any')
    node.areSlotsGranted = true
    node.settleFor(30_000)
    node.apply('s', { packages: { a: pkg('1.1.0') } })
    node.areSlotsGranted = false
    node.settleFor(5_000)
    expect(node.podWatch).toBe('no')
  })
})
