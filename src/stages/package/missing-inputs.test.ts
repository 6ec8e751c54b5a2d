import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { plainStep, simplePackage } from '../../../test/kit/node-simulator/package-content.ts'
import { isCordoned, pkg, reboot } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import { missingInputs } from './spec-problems.ts'

const step = (argument: string) => plainStep('run.sh', { arguments: [argument] })
const config = (change: Partial<PackageConfig>): PackageConfig => ({ ...simplePackage(), ...change })

describe('what a package expects of its spec', () => {
  test.each<[string, PackageConfig, ReturnType<typeof pkg>, string | undefined]>([
    ['a file that is there', config({ expectedConfigFiles: ['x'] }), pkg('1.0.0', { configMap: { x: '' } }), undefined],
    [
      'a missing file',
      config({ expectedConfigFiles: ['x'] }),
      pkg('1.0.0'),
      'its configMap lacks x, which the package expects',
    ],
    ['an argument', config({ modes: { apply: [step('plain')] } }), pkg('1.0.0'), undefined],
    ['a variable of the agent', config({ modes: { apply: [step('env:SKYHOOK_LOG_DIR')] } }), pkg('1.0.0'), undefined],
    [
      'a variable that is there',
      config({ modes: { apply: [step('env:E')] } }),
      pkg('1.0.0', { env: [{ name: 'E', value: '1' }] }),
      undefined,
    ],
    [
      'a missing variable',
      config({ modes: { 'config-check': [step('env:E')] } }),
      pkg('1.0.0'),
      'its env lacks E, which arguments of its steps name',
    ],
    [
      'a variable of a stage that does not run',
      config({ modes: { upgrade: [step('env:E')] } }),
      pkg('1.0.0'),
      undefined,
    ],
    [
      'a variable of a stage without an interrupt',
      config({ modes: { 'post-interrupt': [step('env:E')] } }),
      pkg('1.0.0'),
      undefined,
    ],
    [
      'a variable that is missing after the interrupt',
      config({ modes: { 'post-interrupt': [step('env:E')] } }),
      pkg('1.0.0', { interrupt: reboot }),
      'its env lacks E, which arguments of its steps name',
    ],
  ])('what is missing is reported for %s', (_, packageConfig, spec, expected) => {
    expect(missingInputs(packageConfig, spec, 'apply')).toBe(expected)
  })

  test('a file that the package ships is not missing', () => {
    const packageConfig = config({ expectedConfigFiles: ['x', 'y'] })
    const lacksX = 'its configMap lacks x, which the package expects'
    expect(missingInputs(packageConfig, pkg('1.0.0'), 'apply', ['y'])).toBe(lacksX)
    expect(missingInputs(packageConfig, pkg('1.0.0'), 'apply', ['x', 'y'])).toBeUndefined()
  })

  test('a missing file is reported before a slot is requested and the node is drained', () => {
    const node = new NodeSimulator()
    node.images.set('r/pkg:1.0.0', config({ expectedConfigFiles: ['x'] }))
    node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: reboot }) } })
    node.settleFor(5_000)
    expect([node.reason(), node.status(), node.slots, isCordoned(node), node.executedSteps]).toEqual([
      'InvalidSpec',
      'blocked',
      [],
      false,
      [],
    ])
    expect(node.annotation('reason_s')).toContain('package a: its configMap lacks x, which the package expects')
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: '' } }) } })
    node.settleFor(5_000)
    expect(node.status()).toBe('complete')
  })

  test('a file that a change removes is reported while the node stays in service', () => {
    const node = new NodeSimulator()
    node.images.set('r/pkg:1.0.0', config({ expectedConfigFiles: ['x'] }))
    node.apply('s', { packages: { a: pkg('1.0.0', { configMap: { x: '' } }) } })
    node.settleFor(5_000)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect([node.reason(), node.slots, node.state()]).toEqual(['InvalidSpec', [], ['a|1.0.0: config/complete']])
  })
})
