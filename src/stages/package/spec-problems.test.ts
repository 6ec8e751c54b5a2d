import { describe, expect, test } from 'vitest'
import { cron, isCordoned, packageWith } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { dependencyProblems, specProblems } from './spec-problems.ts'

const services = (...names: string[]): PackageSpec => packageWith({ type: 'service', services: names })
const env = (...variables: NonNullable<PackageSpec['env']>): PackageSpec => packageWith(cron, { env: variables })
const kilobytes = (count: number): string => 'x'.repeat(count * 1024)

/** What no host can do, although the API server takes it, or has taken it before. */
const impossible: readonly (readonly [name: string, spec: PackageSpec, message: RegExp])[] = [
  [
    'a pattern of services',
    services('kubelet', 'cron*'),
    /^packages\.a\.interrupt\.services\[1\]: "cron\*" is not the/,
  ],
  [
    'a blank behind a service',
    services('cron.service '),
    /services\[0\]: "cron\.service " is not the name of a unit: w/,
  ],
  ['a template of a service', services('getty@'), /"getty@" is a template without an instance: write one/],
  [
    'a path of a service',
    packageWith(undefined, {
      configMap: { 'a.conf': 'x' },
      configInterrupts: { 'a.*': { type: 'service', services: ['/etc/x.service'] } },
    }),
    /^packages\.a\.configInterrupts\["a\.\*"\]\.services\[0\]: "\/etc\/x\.service" is not the name of a unit/,
  ],
  [
    'a variable at the limit of the definition',
    env({ name: 'BIG', value: kilobytes(128) }),
    /^packages\.a\.env\[0\]\.value: BIG is 131076 bytes long; the kernel takes at most 131071: put the text into configMap/,
  ],
  [
    'a variable that others make long',
    env({ name: 'HALF', value: kilobytes(100) }, { name: 'BOTH', value: '$(HALF)$(HALF)' }),
    /^packages\.a\.env\[1\]\.value: BOTH is 204805 bytes long/,
  ],
  [
    'a variable that would be gigabytes',
    env({ name: 'HALF', value: kilobytes(100) }, { name: 'ALL', value: '$(HALF)'.repeat(18_000) }),
    /^packages\.a\.env\[1\]\.value: ALL is 11\d{5} bytes long/,
  ],
  [
    'many long variables',
    env(...Array.from({ length: 12 }, (_, index) => ({ name: `V${index}`, value: kilobytes(120) }))),
    /^packages\.a\.env: is 147\d{4} bytes long in all; at most 1400000 fit/,
  ],
  ['a NUL in a variable', env({ name: 'A', value: 'a\0b' }), /^packages\.a\.env\[0\]\.value: A contains a NUL/],
]

test.each(impossible)('%s is named with its place and what to do', (_, spec, message) => {
  expect(specProblems({ a: spec })).toEqual([expect.stringMatching(message)])
})

test.each(impossible)('%s holds no slot, disturbs no node, and is corrected by an edit', (_, spec) => {
  const node = new NodeSimulator()
  node.apply('s', { packages: { a: spec } })
  node.settleFor(10_000)
  expect([node.reason(), node.status(), node.slots, isCordoned(node), node.executedSteps]).toEqual([
    'InvalidSpec',
    'blocked',
    [],
    false,
    [],
  ])
  node.apply('s', { packages: { a: packageWith(cron) } })
  node.settleFor(10_000)
  expect([node.status(), node.executedInterrupts]).toEqual(['complete', ['service cron']])
})

test.each(impossible)('%s that comes while the node is at work is corrected, or taken out, by an edit', (_, spec) => {
  for (const packages of [{ a: packageWith(cron) }, {}]) {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: packageWith(cron, { uninstall: { enabled: false } }) } })
    node.settleFor(5_000)
    node.apply('s', { packages: { a: { ...spec, uninstall: { enabled: false } } } })
    node.finishHanging('a')
    node.settleFor(10_000)
    expect([node.reason(), isCordoned(node)]).toEqual(['InvalidSpec', true])
    node.apply('s', { packages })
    node.settleFor(60_000)
    expect([node.status(), isCordoned(node), node.slots]).toEqual(['complete', false, []])
  }
})

test.each<readonly [string, PackageSpec]>([
  ['services of other types', packageWith({ type: 'reboot', services: ['cron*'] })],
  ['a variable of the greatest length', env({ name: 'BIG', value: 'x'.repeat(131_071 - 'BIG='.length) })],
  [
    'a variable whose text comes from elsewhere',
    env({ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }),
  ],
  ['a text that refers to such a variable', env({ name: 'B', value: '$(A)' })],
])('%s may be as it is', (_, spec) => expect(specProblems({ a: spec })).toEqual([]))

const pkg = (version: string, dependsOn?: Record<string, string>): PackageSpec => ({
  version,
  image: 'r/x',
  ...(dependsOn && { dependsOn }),
})

describe('a dependency graph', () => {
  test('a dependency graph without problems has none', () => {
    expect(
      dependencyProblems({
        a: pkg('1.0.0'),
        b: pkg('2.0.0', { a: '1.0.0' }),
        c: pkg('1.0.0', { a: '^1', b: '>=2 <3' }),
      }),
    ).toEqual([])
  })
  test.each<[string, Record<string, PackageSpec>, string]>([
    ['an unknown name', { a: pkg('1.0.0', { z: '1.0.0' }) }, 'packages.a.dependsOn.z: this Skyhook has no package z'],
    ['itself', { a: pkg('1.0.0', { a: '1.0.0' }) }, 'cannot depend on itself'],
    [
      'a version that no package has',
      { a: pkg('1.0.0'), b: pkg('1.0.0', { a: '2.0.0' }) },
      'requires 2.0.0, but a is at 1.0.0',
    ],
    [
      'no version at all',
      { a: pkg('1.0.0'), b: pkg('1.0.0', { a: 'newest' }) },
      'neither a version nor a semver range',
    ],
    [
      'a cycle',
      { a: pkg('1.0.0', { b: '1.0.0' }), b: pkg('1.0.0', { c: '1.0.0' }), c: pkg('1.0.0', { a: '1.0.0' }) },
      'cycle a -> b -> c -> a',
    ],
  ])('a dependency problem names %s', (_, packages, expected) => {
    expect(dependencyProblems(packages).join('\n')).toContain(expected)
  })
  test('a diamond is not a cycle', () => {
    expect(
      dependencyProblems({
        a: pkg('1'),
        b: pkg('1', { a: '1' }),
        c: pkg('1', { a: '1' }),
        d: pkg('1', { b: '1', c: '1' }),
      }),
    ).toEqual([])
  })
})
