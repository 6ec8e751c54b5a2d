import { describe, expect, test } from 'vitest'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { dependencyProblems } from './dependencies.ts'

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
