/** Names that people may choose, and that every JavaScript object has: they mean nothing before somebody sets them. */
import { describe, expect, test } from 'vitest'
import { emptyJournal } from '../../schemas/journal.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

const name = 'constructor'
const installed = [`${name} apply run.sh`, `${name} apply-check run_check.sh`]

describe('a Skyhook and a package that are named constructor', () => {
  const complete = (): NodeSimulator => {
    const node = new NodeSimulator()
    node.apply(name, { packages: { [name]: pkg('1.0.0', { configMap: { k: 'v' } }), b: pkg('1.0.0') } })
    node.settleFor(10_000)
    return node
  }
  const statusOf = (node: NodeSimulator): unknown => node.annotation(`status_${name}`)

  test('the package is installed', () => {
    const node = complete()
    expect(statusOf(node)).toBe('complete')
    expect(node.executedSteps).toEqual(expect.arrayContaining(installed))
  })

  test('the package is uninstalled once the spec no longer has it', () => {
    const node = complete()
    node.apply(name, { packages: { b: pkg('1.0.0') } })
    node.settleFor(10_000)
    expect(statusOf(node)).toBe('complete')
    expect(node.executedSteps).toContain(`${name} uninstall run.sh`)
  })

  test('a dependency on the package without one in the spec is a mistake', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { b: pkg('1.0.0', { dependsOn: { [name]: '1.0.0' } }) } })
    node.settleFor(5_000)
    expect(node.annotation('reason_s')).toContain(`this Skyhook has no package ${name}`)
  })

  test('a cordon that neither cluster nor journal knows is taken off', () => {
    const node = new NodeSimulator()
    node.journal = emptyJournal('node-uid')
    node.node = { ...node.node, spec: { ...node.node.spec, unschedulable: true } }
    node.edit((annotations) => (annotations[`skyhook.nvidia.com/cordon_${name}`] = 'true'))
    node.settleFor(5_000)
    expect([node.annotation(`cordon_${name}`), node.node.spec?.unschedulable ?? false]).toEqual([undefined, false])
  })

  test('the work of the operator on the package is continued', () => {
    const node = new NodeSimulator()
    node.journal = emptyJournal('node-uid')
    node.hostFolders = new Set([name])
    node.edit((annotations) => {
      const entry = { name, version: '1.0.0', image: 'r/pkg', stage: 'config', state: 'in_progress' }
      annotations[`skyhook.nvidia.com/nodeState_${name}`] = JSON.stringify({ [`${name}|1.0.0`]: entry })
      annotations[`skyhook.nvidia.com/status_${name}`] = 'in_progress'
    })
    node.apply(name, { packages: { [name]: pkg('1.0.0', { configMap: { k: 'v' } }) } })
    node.settleFor(10_000)
    expect([statusOf(node), node.executedSteps[0]]).toEqual(['complete', `${name} config run.sh`])
  })
})
