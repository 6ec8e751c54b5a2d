import { describe, expect, test } from 'vitest'
import { emptyJournal } from '../schemas/journal.ts'
import type { PackageSpec } from '../schemas/skyhook.ts'
import { NodeModel, guardedStep, plainStep, simplePackage } from './node-model.ts'

const pkg = (version: string, change: Partial<PackageSpec> = {}): PackageSpec => ({ version, image: 'r/pkg', ...change })
const install = ['a apply run.sh', 'a apply-check run_check.sh', 'a config run.sh', 'a config-check run_check.sh']

function installed(change: Partial<PackageSpec> = {}): NodeModel {
  const node = new NodeModel()
  node.apply('s', { packages: { a: pkg('1.0.0', change) } })
  node.settleOver(5_000)
  expect(node.status()).toBe('complete')
  node.ran.length = 0
  return node
}

describe('a first install', () => {
  test('runs apply and config with their checks, publishes completion and gives the slot back', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(5_000)
    expect(node.ran).toEqual(install)
    expect(node.state()).toEqual(['a|1.0.0: config/complete'])
    expect(node.status()).toBe('complete')
    expect(node.slots).toEqual([])
    expect(node.reason()).toBeUndefined()
    expect(node.node.metadata.labels?.['skyhook.nvidia.com/status_s']).toBe('complete')
    expect(node.node.status?.conditions?.map(({ type, status }) => `${type} ${status}`).sort()).toEqual([
      'Ready True',
      'skyhook.nvidia.com/s/Erroring False',
      'skyhook.nvidia.com/s/NotReady False',
    ])
  })

  test('writes the Node twice: when it begins and when it is complete', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    expect(node.patches).toBe(2)
  })

  test('starts nothing before the slot is granted and confirmed', () => {
    const node = new NodeModel()
    node.grantSlots = false
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(2_000)
    expect(node.ran).toEqual([])
    expect(node.status()).toBe('waiting')
    expect(node.reason()).toBe('WaitingForSlot')
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({ reason: 'WaitingForSlot', message: 'all slots are held' })
    node.grantSlots = true
    node.settleOver(20_000)
    expect(node.status()).toBe('complete')
    expect(node.annotation('reason_s')).toBeUndefined()
  })

  test('asks for a slot only once a package is prepared', () => {
    const node = new NodeModel()
    node.images.set('r/pkg:1.0.0', 'manifest unknown')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(2_000)
    expect(node.slots).toEqual([])
    expect(node.reason()).toBe('ImagePull')
    expect(node.annotation('reason_s')).toContain('manifest unknown')
    node.images.delete('r/pkg:1.0.0')
    node.settleOver(60_000)
    expect(node.status()).toBe('complete')
  })

  test('respects dependencies', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkg('1.0.0', { dependsOn: { b: '1.0.0' } }), b: pkg('1.0.0') } })
    node.settleOver(5_000)
    expect(node.ran.map((line) => line.split(' ')[0])).toEqual(['b', 'b', 'b', 'b', 'a', 'a', 'a', 'a'])
  })

  test('runs independent packages side by side, and one after another when serial', () => {
    for (const serial of [false, true]) {
      const node = new NodeModel()
      node.hangs.add('a').add('b')
      node.apply('s', { serial, packages: { a: pkg('1.0.0'), b: pkg('1.0.0') } })
      node.settle()
      expect(node.ran).toEqual(serial ? ['a apply run.sh'] : ['a apply run.sh', 'b apply run.sh'])
    }
  })

  test('of a package without steps completes', () => {
    const node = new NodeModel()
    node.images.set('r/pkg:1.0.0', simplePackage({ apply: [], 'apply-check': [] }))
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(2_000)
    expect(node.ran).toEqual([])
    expect(node.status()).toBe('complete')
  })

  test('of a Skyhook without packages is complete and takes no slot', () => {
    const node = new NodeModel()
    node.grantSlots = false
    node.apply('s', {})
    node.settleOver(1_000)
    expect(node.status()).toBe('complete')
  })
})

describe('failures', () => {
  test('a failing action stops the attempt, is published and tried again after a wait', () => {
    const node = new NodeModel()
    node.exits.set('a apply', 3)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(1_500)
    expect(node.ran).toEqual(['a apply run.sh'])
    expect(node.state()).toEqual(['a|1.0.0: apply/erroring'])
    expect(node.status()).toBe('erroring')
    expect(node.annotation('reason_s')).toContain('apply run.sh exited 3, expected 0')
    expect(node.slots).toHaveLength(1) // the host is half changed: the slot stays
    node.exits.clear()
    node.settleOver(6_000)
    expect(node.status()).toBe('complete')
  })

  test('all checks run before the stage fails, and the stage starts over from its first step', () => {
    const node = new NodeModel()
    node.images.set(
      'r/pkg:1.0.0',
      simplePackage({ apply: [plainStep('run.sh')], 'apply-check': [plainStep('one_check.sh'), plainStep('two_check.sh')] }),
    )
    node.exits.set('a apply-check', 1)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(1_000)
    expect(node.ran).toEqual(['a apply run.sh', 'a apply-check one_check.sh', 'a apply-check two_check.sh'])
    expect(node.reason()).toBe('CheckFailed')
    node.settleOver(5_000)
    expect(node.ran.slice(3)).toEqual(['a apply run.sh', 'a apply-check one_check.sh', 'a apply-check two_check.sh'])
  })

  test('a configuration mended in the spec is tried at once', () => {
    const node = new NodeModel()
    node.exits.set('a apply-check', 1)
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: 'bad' } }) } })
    node.settle()
    node.exits.clear()
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: 'good' } }) } })
    node.settle()
    expect(node.status()).toBe('complete')
  })

  test('after three failed attempts the slot says so', () => {
    const node = new NodeModel()
    node.exits.set('a apply', 1)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(30_000)
    expect(node.slots[0]?.phase).toBe('failed')
  })

  test('the exit code is compared with returncodes', () => {
    const node = new NodeModel()
    node.images.set(
      'r/pkg:1.0.0',
      simplePackage({ apply: [plainStep('run.sh', { returncodes: [0, 3] })], 'apply-check': [plainStep('c.sh')] }),
    )
    node.exits.set('a apply', 3)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(1_000)
    expect(node.status()).toBe('complete')
  })

  test('an image that cannot be pulled gives the slot back when nothing on the host is half changed', () => {
    const node = new NodeModel()
    node.images.set('r/other:1.0.0', 'denied')
    node.apply('s', { packages: { a: pkg('1.0.0'), b: { version: '1.0.0', image: 'r/other' } } })
    node.settleOver(3_000)
    expect(node.state()).toEqual(['a|1.0.0: config/complete'])
    expect(node.slots).toEqual([])
    expect(node.reason()).toBe('ImagePull')
  })
})

describe('a reference of env that leads nowhere', () => {
  const valueFrom = { secretKeyRef: { name: 's', key: 'k' } }
  const packages = (more: Partial<PackageSpec> = {}): Readonly<Record<string, PackageSpec>> => ({
    a: pkg('1.0.0', { env: [{ name: 'A', valueFrom }], interrupt: { type: 'reboot' }, ...more }),
  })

  test('is told before a slot is asked for, and tried again until it leads somewhere', () => {
    const node = new NodeModel()
    node.lacking.add('A')
    node.apply('s', { packages: packages() })
    node.settleOver(5_000)
    expect([node.reason(), node.status(), node.slots, node.ran, node.node.spec?.unschedulable]).toEqual([
      'ReferenceMissing',
      'waiting',
      [],
      [],
      undefined,
    ])
    expect(node.annotation('reason_s')).toContain('package a: it is not there')
    node.lacking.clear()
    node.settleOver(60_000)
    expect([node.status(), node.interrupted]).toEqual(['complete', ['reboot']])
  })

  test('of a change leaves a complete node in service, and nothing is looked for when nothing is to begin', () => {
    const node = new NodeModel()
    node.apply('s', { packages: packages() })
    node.settleOver(60_000)
    node.lacking.add('A')
    node.settleOver(60_000)
    expect(node.status()).toBe('complete')
    node.apply('s', { packages: packages({ configMap: { x: '1' } }) })
    node.settleOver(5_000)
    expect([node.reason(), node.slots]).toEqual(['ReferenceMissing', []])
    node.apply('s', { packages: {} })
    node.settleOver(10_000)
    expect([node.status(), node.ran.at(-1)]).toEqual(['complete', 'a uninstall-check run_check.sh'])
  })
})

describe('interrupted work', () => {
  test('a step that runs while the agent starts anew is found again and not run twice', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.prepared.clear() // a new agent has prepared nothing yet
    node.settle()
    node.finishHanging('a')
    node.settleOver(5_000)
    expect(node.ran).toEqual(install)
  })

  test('a step lost with its host is said to be unknown and repeated, the finished ones before it are not', () => {
    const node = new NodeModel()
    node.images.set('r/pkg:1.0.0', simplePackage({ apply: [plainStep('one.sh'), plainStep('two.sh')], 'apply-check': [plainStep('c.sh')] }))
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    for (const [id, { state }] of node.attempts)
      if (state === 'running') node.attempts.set(id, { state: 'ended', end: { outcome: 'exited', code: 0 } })
    node.settle()
    expect(node.ran).toEqual(['a apply one.sh', 'a apply two.sh'])
    node.powerCut()
    node.hangs.clear()
    node.settleOver(5_000)
    expect(node.ran.slice(0, 4)).toEqual(['a apply one.sh', 'a apply two.sh', 'a apply two.sh', 'a apply-check c.sh'])
    expect(node.events.filter(({ type }) => type === 'stepUnknown')).toHaveLength(1)
    expect(node.status()).toBe('complete')
  })

  test('a step that the host cannot start now says why and is waited for; the steps before it do not run again', () => {
    const node = new NodeModel()
    node.images.set('r/pkg:1.0.0', simplePackage({ apply: [plainStep('one.sh'), plainStep('two.sh')], 'apply-check': [plainStep('c.sh')] }))
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.hindrance = 'ENOSPC: no space left on device'
    node.finishHanging('a')
    node.settleOver(20_000)
    expect(node.ran).toEqual(['a apply one.sh'])
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({ reason: 'HostUnusable', message: node.hindrance })
    expect(node.events.some(({ type }) => type === 'stageFailed')).toBe(false)
    node.hindrance = undefined
    node.settleOver(5_000)
    expect(node.ran.slice(0, 3)).toEqual(['a apply one.sh', 'a apply two.sh', 'a apply-check c.sh'])
    expect(node.status()).toBe('complete')
    expect(node.annotation('reason_s')).toBeUndefined()
  })

  test('a step stopped by the shutdown of its host is unknown, not failed', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.finishHanging('a', { outcome: 'killed', signal: 'TERM' })
    node.bootId = 'boot-2'
    node.settleOver(5_000)
    expect(node.status()).toBe('complete')
    expect(node.events.some(({ type }) => type === 'stageFailed')).toBe(false)
  })

  test('a deleted slot of begun work is taken again', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.slots.length = 0
    node.grantSlots = false
    node.settle()
    expect(node.slots).toHaveLength(1)
  })

  test('a guarded step that succeeded is skipped when its stage is repeated', () => {
    const node = new NodeModel()
    node.images.set('r/pkg:1.0.0', simplePackage({ apply: [guardedStep('once.sh')], 'apply-check': [plainStep('c.sh')] }))
    node.exits.set('a apply-check', 1)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(1_000)
    node.exits.clear()
    node.settleOver(10_000)
    expect(node.ran.filter((line) => line.includes('once.sh'))).toHaveLength(1)
    expect(node.status()).toBe('complete')
  })
})

describe('holds', () => {
  test('pause before the start: nothing is fetched and nothing runs', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkg('1.0.0') } }, { 'skyhook.nvidia.com/pause': 'true' })
    node.settleOver(1_000)
    expect([node.status(), node.reason(), node.ran, node.prepared.size]).toEqual(['paused', 'Paused', [], 0])
  })

  test('pause during a step: it ends and is recorded, nothing new starts, the slot stays', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.apply('s', { packages: { a: pkg('1.0.0') } }, { 'skyhook.nvidia.com/pause': 'true' })
    node.finishHanging('a')
    node.settleOver(2_000)
    expect(node.ran).toEqual(['a apply run.sh'])
    expect([node.status(), node.slots.length]).toEqual(['paused', 1])
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(5_000)
    expect(node.ran).toEqual(install)
  })

  test('an intolerable taint blocks the beginning with its name', () => {
    const node = new NodeModel()
    node.node = { ...node.node, spec: { taints: [{ key: 'gpu', value: 'x', effect: 'NoSchedule' }] } }
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(1_000)
    expect(node.status()).toBe('blocked')
    expect(node.annotation('reason_s')).toContain('gpu=x:NoSchedule')
    node.apply('s', { packages: { a: pkg('1.0.0') }, additionalTolerations: [{ key: 'gpu', operator: 'Exists' }] })
    node.settleOver(5_000)
    expect(node.status()).toBe('complete')
  })

  test('the later Skyhook waits for the earlier one, unless that is disabled', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('first', { priority: 1, packages: { a: pkg('1.0.0') } })
    node.apply('second', { packages: { b: pkg('1.0.0') } })
    node.settleOver(2_000)
    expect(node.reason('second')).toBe('WaitingForPriority')
    node.finishHanging('a')
    node.settleOver(5_000)
    expect(node.status('second')).toBe('complete')
    expect(node.ran.indexOf('b apply run.sh')).toBe(4)
  })

  test('an invalid spec blocks only itself', () => {
    const node = new NodeModel()
    node.apply('a-bad', { packages: { a: pkg('1.0.0', { dependsOn: { ghost: '1.0.0' } }) } })
    node.apply('b-good', { packages: { b: pkg('1.0.0') } })
    node.settleOver(3_000)
    expect([node.reason('a-bad'), node.status('b-good')]).toEqual(['InvalidSpec', 'complete'])
  })
})

describe('changes', () => {
  test('a config change runs config alone, under a slot', () => {
    const node = installed({ configMap: { x: '1' } })
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: '2' } }) } })
    node.settleOver(3_000)
    expect(node.ran).toEqual(['a config run.sh', 'a config-check run_check.sh'])
    expect(node.status()).toBe('complete')
  })

  test('a change without work causes no step and no write', () => {
    const node = installed()
    const patches = node.patches
    node.apply('s', { packages: { a: pkg('1.0.0', { gracefulShutdown: '10s' }) } })
    node.settleOver(3_000)
    expect([node.ran, node.patches]).toEqual([[], patches])
  })

  test('A to B to A while B is being configured configures A again', () => {
    const node = installed({ configMap: { x: 'A' } })
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: 'B' } }) } })
    node.settle()
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: 'A' } }) } })
    node.finishHanging('a')
    node.settleOver(5_000)
    expect(node.ran.filter((line) => line === 'a config run.sh')).toHaveLength(2)
    expect(Object.values(node.journal.skyhooks['s']?.packages ?? {})[0]?.finished?.config).toEqual({ x: 'A' })
  })

  test('an upgrade runs upgrade and config, and drops the old entry', () => {
    const node = installed()
    node.apply('s', { packages: { a: pkg('1.1.0') } })
    node.settleOver(3_000)
    expect(node.ran).toEqual(['a upgrade run.sh', 'a upgrade-check run_check.sh', 'a config run.sh', 'a config-check run_check.sh'])
    expect(node.state()).toEqual(['a|1.1.0: config/complete'])
  })

  test('a downgrade uninstalls the old version first', () => {
    const node = installed()
    node.apply('s', { packages: { a: pkg('0.9.0') } })
    node.settleOver(3_000)
    expect(node.ran).toEqual(['a uninstall run.sh', 'a uninstall-check run_check.sh', ...install])
    expect(node.state()).toEqual(['a|0.9.0: config/complete'])
  })

  test('a removed package is uninstalled and its entry goes', () => {
    const node = installed()
    node.apply('s', { packages: {} })
    node.settleOver(3_000)
    expect(node.ran).toEqual(['a uninstall run.sh', 'a uninstall-check run_check.sh'])
    expect([node.annotation('nodeState_s'), node.status(), node.slots]).toEqual(['{}', 'complete', []])
  })

  test('a removed package whose policy keeps it stays', () => {
    const node = installed({ uninstall: { enabled: false } })
    node.apply('s', { packages: {} })
    node.settleOver(3_000)
    expect([node.ran, node.state(), node.status()]).toEqual([[], ['a|1.0.0: config/complete'], 'complete'])
  })

  test('uninstall.apply uninstalls a package that is still listed, once', () => {
    const node = installed()
    node.apply('s', { packages: { a: pkg('1.0.0', { uninstall: { enabled: true, apply: true } }) } })
    node.settleOver(5_000)
    expect(node.ran).toEqual(['a uninstall run.sh', 'a uninstall-check run_check.sh'])
    expect(node.status()).toBe('complete')
  })

  test('an image changed under a running step stops it and starts over from the new one', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.hangs.clear()
    node.apply('s', { packages: { a: { version: '1.0.0', image: 'r/mended' } } })
    node.settleOver(5_000)
    expect(node.ran).toEqual(['a apply run.sh', ...install])
    expect(Object.values(node.journal.skyhooks['s']?.packages ?? {})[0]?.work?.digest).toContain('r/mended')
  })

  test('an image that changes to one that cannot be pulled lets the running step end', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.images.set('r/bad:1.0.0', 'denied')
    node.apply('s', { packages: { a: { version: '1.0.0', image: 'r/bad' } } })
    node.settleOver(2_000)
    expect([...node.attempts.values()].map(({ state }) => state)).toEqual(['running'])
    expect(node.reason()).toBe('ImagePull')
  })
})

describe('what people do to the annotation', () => {
  test('removing it starts over', () => {
    const node = installed()
    node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    node.settleOver(5_000)
    expect(node.ran).toEqual(install)
    expect(node.status()).toBe('complete')
  })

  test('removing one entry restarts that package only', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkg('1.0.0'), b: pkg('1.0.0') } })
    node.settleOver(3_000)
    node.ran.length = 0
    node.edit((annotations) => {
      const state = JSON.parse(annotations['skyhook.nvidia.com/nodeState_s'] ?? '{}') as Record<string, unknown>
      delete state['a|1.0.0']
      annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify(state)
    })
    node.settleOver(5_000)
    expect(node.ran).toEqual(install)
  })

  test('setting a stage restarts there', () => {
    const node = installed()
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/nodeState_s'] = (annotations['skyhook.nvidia.com/nodeState_s'] ?? '').replace(
        '"state":"complete"',
        '"state":"in_progress"',
      )
    })
    node.settleOver(5_000)
    expect(node.ran).toEqual(['a config run.sh', 'a config-check run_check.sh'])
  })

  test.each(['no json', '[]', '{"a|1.0.0":{"stage":"dance"}}'])('%s is ignored, said and published again', (text) => {
    const node = installed()
    const published = node.annotation('nodeState_s')
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/nodeState_s'] = text
    })
    node.settleOver(5_000)
    expect(node.ran).toEqual([])
    expect(node.annotation('nodeState_s')).toBe(published)
    expect(node.events.some(({ type }) => type === 'editIgnored')).toBe(true)
  })

  test('a lost annotation and companion are published again from the journal', () => {
    const node = installed()
    const published = node.annotation('nodeState_s')
    node.edit((annotations) => {
      for (const key of Object.keys(annotations)) delete annotations[key]
    })
    node.settleOver(5_000)
    expect([node.ran, node.annotation('nodeState_s')]).toEqual([[], published])
  })
})

describe('a Skyhook that is being deleted', () => {
  const deleted = (node: NodeModel): void => {
    const view = node.views.get('s')
    if (view) node.views.set('s', { ...view, metadata: { ...view.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } })
  }

  test('uninstalls, under a slot, what asks for it', () => {
    const node = installed({ uninstall: { enabled: true } })
    deleted(node)
    node.settleOver(5_000)
    expect([node.ran, node.annotation('nodeState_s'), node.slots]).toEqual([
      ['a uninstall run.sh', 'a uninstall-check run_check.sh'],
      '{}',
      [],
    ])
  })

  test.each([[undefined], [{ enabled: false }]])('leaves what does not: %j', (uninstall) => {
    const node = installed(uninstall && { uninstall })
    deleted(node)
    node.settleOver(5_000)
    expect([node.ran, node.state()]).toEqual([[], ['a|1.0.0: config/complete']])
  })
})

describe('a host without a journal', () => {
  test('that was imaged anew starts over, and says so', () => {
    const node = installed()
    node.journal = emptyJournal('node-uid')
    node.settleOver(5_000)
    expect([node.ran, node.status()]).toEqual([install, 'complete'])
    expect(node.events.some(({ type }) => type === 'startedOver')).toBe(true)
  })

  test('is not rebooted again for a spec that it was rebooted for', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot' } }) } })
    node.settleOver(30_000)
    expect([node.interrupted, node.status()]).toEqual([['reboot'], 'complete'])
    node.journal = emptyJournal('node-uid')
    node.ran.length = 0
    node.settleOver(30_000)
    expect([node.interrupted, node.status(), node.ran.length]).toEqual([['reboot'], 'complete', 6])
  })

  test('is rebooted again after a reset by a person', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot' } }) } })
    node.settleOver(30_000)
    node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    node.settleOver(30_000)
    expect(node.interrupted).toEqual(['reboot', 'reboot'])
  })

  test('on which the original operator finished its work goes on from there', () => {
    const node = new NodeModel()
    node.hostFolders = new Set(['s'])
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/nodeState_s'] =
        '{"a|1.0.0":{"name":"a","version":"1.0.0","image":"r/pkg","stage":"config","state":"complete"}}'
      annotations['skyhook.nvidia.com/status_s'] = 'complete'
    })
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(5_000)
    expect([node.ran, node.status()]).toEqual([[], 'complete'])
    node.apply('s', { packages: { a: pkg('1.1.0') } })
    node.settleOver(5_000)
    expect(node.ran[0]).toBe('a upgrade run.sh')
  })

  test.each([
    ['beside the present one', '{"a":ENTRY,"a|1.0.0":ENTRY}'],
    ['alone', '{"a":ENTRY}'],
  ])('reads the form of before v0.5, %s', (_, written) => {
    const node = new NodeModel()
    node.hostFolders = new Set(['s'])
    node.edit((annotations) => {
      const entry = '{"name":"a","version":"1.0.0","image":"r/pkg","stage":"config","state":"complete"}'
      annotations['skyhook.nvidia.com/nodeState_s'] = written.replaceAll('ENTRY', entry)
    })
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(5_000)
    expect([node.ran, node.state(), node.status()]).toEqual([[], ['a|1.0.0: config/complete'], 'complete'])
  })
})

describe('a boot that nobody of ours asked for', () => {
  test('changes nothing by default', () => {
    const node = installed()
    node.reboot()
    node.settleOver(5_000)
    expect(node.ran).toEqual([])
  })

  test('applies every package again where the chart says so, under a slot', () => {
    const node = installed()
    node.reapplyOnReboot = true
    node.grantSlots = false
    node.reboot()
    node.settleOver(5_000)
    expect([node.ran, node.reason()]).toEqual([[], 'WaitingForSlot'])
    node.grantSlots = true
    node.settleOver(60_000)
    expect([node.ran, node.status()]).toEqual([install, 'complete'])
  })

  test('is told from a reboot of our own', () => {
    const node = new NodeModel()
    node.reapplyOnReboot = true
    node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot' } }), b: pkg('1.0.0') } })
    node.settleOver(30_000)
    expect([node.interrupted, node.status(), node.ran.filter((line) => line.startsWith('b apply '))]).toEqual([
      ['reboot'],
      'complete',
      ['b apply run.sh'],
    ])
  })
})

describe('OVERLAY_ALWAYS_RUN_STEP', () => {
  test.each([
    ['true', 2],
    ['false', 1],
  ])('%s: a guarded step runs %i times', (value, times) => {
    const node = new NodeModel()
    node.images.set('r/pkg:1.0.0', simplePackage({ apply: [guardedStep('once.sh')], 'apply-check': [plainStep('c.sh')] }))
    node.exits.set('a apply-check', 1)
    node.apply('s', { packages: { a: pkg('1.0.0', { env: [{ name: 'OVERLAY_ALWAYS_RUN_STEP', value }] }) } })
    node.settleOver(1_000)
    node.exits.clear()
    node.settleOver(10_000)
    expect(node.ran.filter((line) => line.includes('once.sh'))).toHaveLength(times)
  })
})

describe('departures', () => {
  test('a Skyhook that is gone takes its annotations, label, conditions and slot with it, and runs nothing', () => {
    const node = installed()
    node.views.delete('s')
    node.settleOver(2_000)
    expect(node.ran).toEqual([])
    expect([node.node.metadata.annotations, node.node.metadata.labels, node.node.status?.conditions?.map(({ type }) => type)]).toEqual([
      {},
      {},
      ['Ready'],
    ])
    expect(node.journal.skyhooks['s']?.orphaned).toBe(true)
  })

  test('gone during a step: the step is stopped, then the slot goes', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.views.delete('s')
    node.settleOver(2_000)
    expect(node.slots).toEqual([])
    expect(node.journal.skyhooks['s']?.orphaned).toBe(true)
  })

  test('a Skyhook created again under its name keeps what is complete', () => {
    const node = installed()
    node.views.delete('s')
    node.settleOver(2_000)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(5_000)
    expect([node.ran, node.status()]).toEqual([[], 'complete'])
  })

  test('a node that leaves the selector gives the slot back after the running step', () => {
    const node = new NodeModel({ pool: 'x' })
    node.hangs.add('a')
    const spec = { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: pkg('1.0.0') } }
    node.apply('s', spec)
    node.settle()
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
    node.settle()
    expect(node.slots).toHaveLength(1)
    node.finishHanging('a')
    node.settleOver(2_000)
    expect([node.slots, node.ran]).toEqual([[], ['a apply run.sh']])
  })

  test('nothing is known of Skyhooks: nothing changes', () => {
    const node = installed()
    const world = { ...node.world(), skyhooks: { known: false as const, why: '503' } }
    node.world = () => world
    node.settle()
    expect(node.status()).toBe('complete')
    expect(node.ran).toEqual([])
  })
})
