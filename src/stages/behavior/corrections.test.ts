import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { guardedStep, plainStep, simplePackage } from '../../../test/kit/node-simulator/package-content.ts'
import {
  cron,
  install,
  installedNode,
  pkg,
  reboot,
  uninstall,
} from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'

const postInterrupt = ['a post-interrupt run.sh', 'a post-interrupt-check run_check.sh']
const config = ['a config run.sh', 'a config-check run_check.sh']
const bad = { configMap: { x: 'bad' } }
const good = { configMap: { x: 'good' } }

/** Steps of these modes fail while they run with `x: bad`. */
function failingNode(...modes: readonly string[]): NodeSimulator {
  const node = new NodeSimulator()
  node.exitCodeOf = ({ spec, attempt }) =>
    modes.includes(attempt.mode) && spec.configMap?.['x'] === 'bad' ? 1 : undefined
  return node
}

/** What ran from now on until the node has settled. */
function afterSpec(node: NodeSimulator, a: PackageSpec | undefined, ms = 60_000): readonly string[] {
  node.executedSteps.length = 0
  node.apply('s', { packages: a ? { a } : {} })
  node.settleFor(ms)
  return node.executedSteps
}

const outcome = (node: NodeSimulator) => [node.state(), node.status(), node.slots.length]
const completeAt = (version: string, stage = 'config') => [[`a|${version}: ${stage}/complete`], 'complete', 0]
const countEvents = (node: NodeSimulator, type: string): number =>
  node.events.filter((event) => event.type === type).length

describe('a failing post-interrupt', () => {
  test('a corrected configuration runs config, the interrupt and post-interrupt again', () => {
    const node = failingNode('post-interrupt')
    afterSpec(node, pkg('1.0.0', { ...bad, interrupt: cron }))
    expect(node.state()).toEqual(['a|1.0.0: post-interrupt/erroring'])
    expect(afterSpec(node, pkg('1.0.0', { ...good, interrupt: cron }))).toEqual([...config, ...postInterrupt])
    expect(node.executedInterrupts).toEqual(['service cron', 'service cron'])
    expect(outcome(node)).toEqual(completeAt('1.0.0', 'post-interrupt'))
  })

  test('a corrected environment variable runs config again, too', () => {
    const node = new NodeSimulator()
    node.exitCodeOf = ({ spec, attempt }) =>
      attempt.mode === 'post-interrupt' && spec.env?.[0]?.value === 'bad' ? 1 : undefined
    const withEnv = (value: string) => pkg('1.0.0', { env: [{ name: 'E', value }], interrupt: cron })
    afterSpec(node, withEnv('bad'))
    expect(afterSpec(node, withEnv('good'))).toEqual([...config, ...postInterrupt])
    expect(outcome(node)).toEqual(completeAt('1.0.0', 'post-interrupt'))
  })

  test('a correction repeats the interrupts of all keys that changed since the package was complete', () => {
    const node = failingNode('post-interrupt')
    const configInterrupts = { y: cron }
    afterSpec(node, pkg('1.0.0', { configMap: { x: 'good', y: '1' }, configInterrupts }))
    afterSpec(node, pkg('1.0.0', { configMap: { x: 'bad', y: '2' }, configInterrupts }))
    expect(node.state()).toEqual(['a|1.0.0: post-interrupt/erroring'])
    afterSpec(node, pkg('1.0.0', { configMap: { x: 'good', y: '2' }, configInterrupts }))
    expect(node.executedInterrupts).toEqual(['service cron', 'service cron'])
    expect(outcome(node)).toEqual(completeAt('1.0.0', 'post-interrupt'))
  })

  test('an unchanged spec repeats only post-interrupt', () => {
    const node = failingNode('post-interrupt')
    afterSpec(node, pkg('1.0.0', { ...bad, interrupt: reboot }))
    node.reboot()
    node.executedSteps.length = 0
    node.settleFor(60_000)
    expect(new Set(node.executedSteps)).toEqual(new Set(['a post-interrupt run.sh']))
    expect(node.executedInterrupts).toEqual(['reboot'])
  })
})

describe('a failing interrupt', () => {
  test('a corrected configuration runs config before the interrupt', () => {
    const node = new NodeSimulator()
    node.failingServices.add('cron')
    afterSpec(node, pkg('1.0.0', { ...bad, interrupt: cron }))
    expect(node.state()).toEqual(['a|1.0.0: interrupt/erroring'])
    node.failingServices.clear()
    expect(afterSpec(node, pkg('1.0.0', { ...good, interrupt: cron }))).toEqual([...config, ...postInterrupt])
    expect(outcome(node)).toEqual(completeAt('1.0.0', 'post-interrupt'))
  })
})

describe('a failing uninstall', () => {
  test('an uninstall starts with what was installed, and an edit of a package that is still listed replaces it', () => {
    const node = failingNode('uninstall')
    afterSpec(node, pkg('2.0.0', bad))
    expect(new Set(afterSpec(node, pkg('1.0.0', good)))).toEqual(new Set(['a uninstall run.sh']))
    expect(afterSpec(node, pkg('1.0.0', { configMap: { x: 'better' } }))).toEqual([...uninstall, ...install])
    expect(outcome(node)).toEqual(completeAt('1.0.0'))
  })

  test('an uninstall that the spec asks for ends with its corrected configuration', () => {
    const node = failingNode('uninstall')
    const policy = { uninstall: { enabled: true, apply: true } }
    afterSpec(node, pkg('1.0.0', bad))
    afterSpec(node, pkg('1.0.0', { ...bad, ...policy }), 300_000)
    expect(outcome(node)).toEqual([['a|1.0.0: uninstall/erroring'], 'erroring', 1])
    expect(afterSpec(node, pkg('1.0.0', { ...good, ...policy }))).toEqual(uninstall)
    expect(outcome(node)).toEqual([[], 'complete', 0])
  })

  test.each([
    ['the same version', '1.0.0'],
    ['a higher version', '2.0.0'],
  ])('a package put back at %s is applied, and its uninstall stops', (_, version) => {
    const node = failingNode('uninstall')
    afterSpec(node, pkg('1.0.0', bad))
    afterSpec(node, undefined, 1_000)
    expect(node.state()).toEqual(['a|1.0.0: uninstall/erroring'])
    expect(afterSpec(node, pkg(version, bad))).toEqual(install)
    expect(outcome(node)).toEqual(completeAt(version))
  })

  test('a package put back while its uninstall runs is applied once the step has been stopped', () => {
    const node = installedNode()
    node.hangingPackages.add('a')
    afterSpec(node, undefined, 1_000)
    expect(node.executedSteps).toEqual(['a uninstall run.sh'])
    node.hangingPackages.clear()
    expect(afterSpec(node, pkg('1.0.0'))).toEqual(install)
    expect(outcome(node)).toEqual(completeAt('1.0.0'))
  })

  test('a package put back during its uninstall is drained for before its apply', () => {
    const node = failingNode('uninstall')
    afterSpec(node, pkg('1.0.0', bad))
    afterSpec(node, undefined, 1_000)
    node.apply('s', { packages: { a: pkg('1.0.0', { ...bad, interrupt: cron }) } })
    for (let round = 0; round < 50 && !node.executedSteps.includes('a apply run.sh'); round++) node.step()
    expect([node.executedSteps.at(-1), node.node.spec?.unschedulable]).toEqual(['a apply run.sh', true])
    node.settleFor(60_000)
    expect(outcome(node)).toEqual(completeAt('1.0.0', 'post-interrupt'))
  })

  test('a downgrade that is taken back applies the higher version again', () => {
    const node = failingNode('uninstall')
    afterSpec(node, pkg('2.0.0', bad))
    afterSpec(node, pkg('1.0.0', bad), 1_000)
    expect(afterSpec(node, pkg('2.0.0', bad))).toEqual(install)
    expect(outcome(node)).toEqual(completeAt('2.0.0'))
  })

  test('a package that left the spec is left behind after three failed attempts, and gives its slot back', () => {
    const node = failingNode('uninstall')
    afterSpec(node, pkg('1.0.0', bad))
    expect(afterSpec(node, undefined)).toEqual(['a uninstall run.sh', 'a uninstall run.sh', 'a uninstall run.sh'])
    expect(outcome(node)).toEqual([['a|1.0.0: uninstall/unknown'], 'complete', 0])
    expect(countEvents(node, 'uninstallFailed')).toBe(1)
    expect(afterSpec(node, undefined, 600_000)).toEqual([])
  })

  test('a package whose apply never passed is left behind as well', () => {
    const node = failingNode('apply', 'uninstall')
    afterSpec(node, pkg('1.0.0', bad), 1_000)
    afterSpec(node, undefined)
    expect(outcome(node)).toEqual([['a|1.0.0: uninstall/unknown'], 'complete', 0])
  })

  test('a package that was left behind does not hold up others, and can be put back', () => {
    const node = failingNode('uninstall')
    afterSpec(node, pkg('1.0.0', bad))
    afterSpec(node, undefined)
    node.apply('s', { packages: { b: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect(node.state()).toEqual(['a|1.0.0: uninstall/unknown', 'b|1.0.0: config/complete'])
    node.apply('s', { packages: {} })
    node.settleFor(5_000)
    expect(afterSpec(node, pkg('2.0.0', good))).toEqual(install)
    expect(outcome(node)).toEqual(completeAt('2.0.0'))
  })

  test('a package that was left behind is uninstalled with the configuration that asks for it', () => {
    const node = failingNode('uninstall')
    afterSpec(node, pkg('1.0.0', bad))
    afterSpec(node, undefined)
    const asked = pkg('1.0.0', { ...good, uninstall: { enabled: true, apply: true } })
    expect(afterSpec(node, asked)).toEqual(uninstall)
    expect(outcome(node)).toEqual([[], 'complete', 0])
  })

  test('a person who sets the stage of a package that was left behind has it uninstalled again', () => {
    const node = failingNode('uninstall')
    afterSpec(node, pkg('1.0.0', bad))
    afterSpec(node, undefined)
    node.exitCodeOf = () => undefined
    node.executedSteps.length = 0
    node.edit((annotations) => {
      const key = 'skyhook.nvidia.com/nodeState_s'
      annotations[key] = (annotations[key] ?? '').replace('"unknown"', '"in_progress"')
    })
    node.settleFor(10_000)
    expect([node.executedSteps, ...outcome(node)]).toEqual([uninstall, [], 'complete', 0])
  })

  test('the deletion of a Skyhook ends although an uninstall fails', () => {
    const node = failingNode('uninstall')
    afterSpec(node, pkg('1.0.0', { ...bad, uninstall: { enabled: true } }))
    node.requestDeletion('s')
    node.settleFor(60_000)
    expect([node.state(), node.slots.length]).toEqual([['a|1.0.0: uninstall/unknown'], 0])
  })
})

describe('a package without a started step', () => {
  test('a package whose first step could not start is forgotten at once', () => {
    const node = new NodeSimulator()
    node.startBlocker = 'the disk is full'
    afterSpec(node, pkg('1.0.0'), 1_000)
    expect(node.state()).toEqual(['a|1.0.0: apply/in_progress'])
    expect(afterSpec(node, undefined)).toEqual([])
    expect(outcome(node)).toEqual([[], 'complete', 0])
  })

  test('an upgrade that could not start is forgotten, and the installed version stays', () => {
    const node = installedNode()
    node.startBlocker = 'the disk is full'
    expect(afterSpec(node, pkg('2.0.0'), 1_000)).toEqual([])
    expect(afterSpec(node, pkg('1.0.0'), 10_000)).toEqual([])
    expect(outcome(node)).toEqual(completeAt('1.0.0'))
  })

  test('a package whose second step has not started is uninstalled', () => {
    const node = new NodeSimulator()
    const modes = { apply: [plainStep('one.sh'), plainStep('two.sh')], uninstall: [plainStep('off.sh')] }
    node.images.set('r/pkg:1.0.0', simplePackage(modes))
    node.exitCodeOf = ({ attempt }) => {
      if (attempt.path === 'one.sh') node.startBlocker = 'the disk is full'
      return undefined
    }
    afterSpec(node, pkg('1.0.0'), 1_000)
    node.startBlocker = undefined
    expect(afterSpec(node, undefined)).toEqual(['a uninstall off.sh'])
  })
})

describe('a package whose first step is guarded', () => {
  const apply = [guardedStep('one.sh'), plainStep('two.sh')]

  /** A node for these versions of the package, and the steps before which the copy dir was put right. */
  function guardedNode(...versions: readonly string[]): { readonly node: NodeSimulator; readonly prepared: string[] } {
    const prepared: string[] = []
    const node = new NodeSimulator(
      {},
      { observer: { stepStarts: ({ attempt, needsCopyDir }) => void (needsCopyDir && prepared.push(attempt.path)) } },
    )
    for (const version of versions)
      node.images.set(`r/pkg:${version}`, simplePackage({ apply, upgrade: [plainStep('up.sh')] }))
    return { node, prepared }
  }

  test('a package of a corrected spec has its files although its first step does not run again', () => {
    const { node, prepared } = guardedNode('1.0.0')
    node.exitCodeOf = ({ spec, attempt }) => (attempt.path === 'two.sh' && spec.env?.[0]?.value === 'bad' ? 1 : 0)
    const withEnv = (value: string) => pkg('1.0.0', { env: [{ name: 'E', value }] })
    afterSpec(node, withEnv('bad'), 1_000)
    expect(node.executedSteps).toEqual(['a apply one.sh', 'a apply two.sh'])
    prepared.length = 0
    expect(afterSpec(node, withEnv('good'))).toEqual(['a apply two.sh'])
    expect([prepared, ...outcome(node)]).toEqual([['two.sh'], ...completeAt('1.0.0')])
  })

  test('a version that comes back, and was kept meanwhile, has its files although its first step does not run', () => {
    const { node } = guardedNode('1.0.0', '2.0.0')
    const kept = { uninstall: { enabled: false } }
    afterSpec(node, pkg('1.0.0', kept))
    afterSpec(node, pkg('2.0.0', kept))
    expect(afterSpec(node, pkg('1.0.0', kept))).toEqual(['a apply two.sh'])
    expect(node.status()).toBe('complete')
  })

  test('a corrected configuration reaches the steps after one that does not run again', () => {
    const { node } = guardedNode('1.0.0')
    node.exitCodeOf = ({ spec, attempt }) => (attempt.path === 'two.sh' && spec.configMap?.['x'] === 'bad' ? 1 : 0)
    afterSpec(node, pkg('1.0.0', bad), 1_000)
    expect(afterSpec(node, pkg('1.0.0', good))).toEqual(['a apply two.sh'])
    expect(node.status()).toBe('complete')
  })
})
