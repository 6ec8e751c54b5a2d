import { describe, expect, test } from 'vitest'
import { type PublishedReason, reasonKey, reasonsKey } from '../../schemas/annotations.ts'
import { type Decide, NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { packageWith, pkg, reboot } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { decide } from '../decide.ts'

const shown = (node: NodeSimulator): Record<string, PublishedReason> =>
  JSON.parse(node.annotation('reasons_s') ?? '{}') as Record<string, PublishedReason>
const namesShown = (node: NodeSimulator): Record<string, string> =>
  Object.fromEntries(Object.entries(shown(node)).map(([name, { reason }]) => [name, reason]))

/** `a` fails, `b` cannot be pulled, `c` needs what is not there, `d` is complete. */
function troubledNode(): NodeSimulator {
  const node = new NodeSimulator()
  node.exitCodes.set('a apply', 3)
  node.images.set('r/gone:1.0.0', 'the registry says: manifest unknown')
  node.missingReferences.add('TOKEN')
  node.apply('s', {
    packages: {
      a: pkg('1.0.0'),
      b: pkg('1.0.0', { image: 'r/gone' }),
      c: pkg('1.0.0', { env: [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'x', key: 'y' } } }] }),
      d: pkg('1.0.0'),
    },
  })
  return node.settleFor(2_000)
}

describe('the reasons of packages', () => {
  test('the trouble of every package is on the Node while another one fails', () => {
    const node = troubledNode()
    expect([node.reason(), namesShown(node)]).toEqual([
      'StepFailed',
      { a: 'StepFailed', b: 'ImagePull', c: 'ReferenceMissing' },
    ])
    expect(shown(node)['b']).toEqual({
      reason: 'ImagePull',
      message: expect.stringContaining('manifest unknown') as string,
      code: 'not-found',
      package: 'b|1.0.0',
      since: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    })
  })

  test('the worst reason has its code and its package as well, and one write brings all of it', () => {
    const written: Readonly<Record<string, string | null>>[] = []
    const watched: Decide = (snapshot, lastReasons) => {
      const plan = decide(snapshot, lastReasons)
      for (const action of plan.actions) if (action.do === 'publish') written.push(action.patch.annotations)
      return plan
    }
    const node = new NodeSimulator({}, { decide: watched })
    node.images.set('r/gone:1.0.0', 'gone')
    node.apply('s', { packages: { b: pkg('1.0.0', { image: 'r/gone' }) } })
    node.settleFor(90_000)
    const withReason = written.filter((annotations) => annotations[reasonKey('s')]?.includes('ImagePull') === true)
    expect(withReason).toEqual([expect.objectContaining({ [reasonsKey('s')]: node.annotation('reasons_s') })])
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toEqual(shown(node)['b'])
    expect(shown(node)['b']).toMatchObject({ code: 'not-found', package: 'b|1.0.0' })
  })

  test('a reason of an agent that wrote no code is written once more, with the code', () => {
    const node = new NodeSimulator()
    node.images.set('r/gone:1.0.0', 'gone')
    node.apply('s', { packages: { b: pkg('1.0.0', { image: 'r/gone' }) } })
    node.settleFor(2_000)
    const { code, package: key, ...old } = shown(node)['b'] ?? {}
    expect([code, key]).toEqual(['not-found', 'b|1.0.0'])
    node.edit((annotations) => {
      annotations[reasonKey('s')] = JSON.stringify(old)
      annotations[reasonsKey('s')] = JSON.stringify({ b: old })
    })
    node.settleFor(2_000)
    expect(shown(node)['b']).toMatchObject({ code, package: key })
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({ code, package: key })
  })

  test('packages at work and packages that wait have no reason', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0'), b: pkg('1.0.0', { dependsOn: { a: '1.0.0' } }) } })
    node.settleFor(2_000)
    expect(node.annotation('reasons_s')).toBeUndefined()
  })

  test('the reasons of packages are removed when no package has trouble', () => {
    const node = troubledNode()
    node.exitCodes.clear()
    node.images.clear()
    node.missingReferences.clear()
    node.settleFor(70_000)
    expect([node.status(), node.annotation('reasons_s')]).toEqual(['complete', undefined])
  })

  test('the reasons of packages are removed with their Skyhook', () => {
    const node = troubledNode()
    node.remove('s')
    node.settleFor(2_000)
    expect(Object.keys(node.node.metadata.annotations ?? {}).filter((key) => key.includes('reason'))).toEqual([])
  })

  test('a reason that lasts stays as it was written when the agent restarts', () => {
    const node = troubledNode()
    const before = shown(node)['a']
    node.restartAgent()
    node.settleFor(1_000)
    expect([before?.reason, shown(node)['a']]).toEqual(['StepFailed', before])
  })

  test('a reason that has lasted less than 0.7 s is written only with something else', () => {
    const node = new NodeSimulator()
    node.areSlotsGranted = false
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(2_000)
    node.images.set('r/gone:1.0.0', 'gone')
    node.apply('s', { packages: { a: pkg('1.0.0'), b: pkg('1.0.0', { image: 'r/gone' }) } })
    node.settleFor(500)
    expect(node.annotation('reasons_s')).toBeUndefined()
    node.settleFor(500)
    expect(namesShown(node)).toEqual({ b: 'ImagePull' })
  })

  test('a refused reboot is a reason of its package', () => {
    const node = new NodeSimulator()
    node.interruptAnswers.set('reboot', { state: 'refused', message: 'no' })
    node.apply('s', { packages: { a: packageWith(reboot), b: pkg('1.0.0') } })
    node.settleFor(2_000)
    expect(namesShown(node)).toEqual({ a: 'RebootRefused' })
  })

  test.each([
    ['shortens long messages', 8, 2_000],
    ['leaves out the least', 200, 100],
  ])('the reasons of packages stay below 4 KiB and valid: the agent %s, and says so', (_, count, length) => {
    const node = new NodeSimulator()
    const names = Array.from({ length: count }, (_, index) => `package-${index}`)
    for (const name of names) node.images.set(`r/${name}:1.0.0`, `${name} ${'ä'.repeat(length)}`)
    node.exitCodes.set('zz apply', 1)
    node.apply('s', {
      packages: {
        ...Object.fromEntries(names.map((name) => [name, pkg('1.0.0', { image: `r/${name}` })])),
        zz: pkg('1.0.0'),
      },
    })
    node.settleFor(2_000)
    expect(Buffer.byteLength(node.annotation('reasons_s') ?? '')).toBeLessThanOrEqual(4096)
    const reasons = shown(node)
    expect(reasons['zz']?.message).toContain('exited 1') // the worst is whole
    if (count === 8) {
      expect(Object.keys(reasons)).toHaveLength(9)
      expect(reasons['package-0']?.message).toMatch(/ä…$/)
    } else {
      const left = Object.keys(reasons).length - 1
      expect(reasons['…']).toMatchObject({ message: `${count + 1 - left} more packages` })
    }
  })
})
