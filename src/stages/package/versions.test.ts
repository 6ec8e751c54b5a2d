import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compareVersions, satisfiesConstraint, isVersionOrRange, parseVersion } from './versions.ts'

describe('versions', () => {
  test.each(['1', '1.2', '1.2.3', 'v1.2.3', '2024.05.10', '1.02.0', '1.2.3-rc.1', '1.2.3+b', '1-rc1', '2024.7.7-test'])(
    '%s is a version',
    (text) => {
      expect(parseVersion(text)).toBeDefined()
    },
  )
  test.each(['', 'a', '1.2.3.4', '2024/07/06', '1.2.', '1..2', '1.2.3-', '>=1', ' 1.0'])(
    '%j is not a version',
    (text) => {
      expect(parseVersion(text)).toBeUndefined()
    },
  )
})

describe('order', () => {
  test.each([
    ['1.2.3', '1.2.4'],
    ['1.9', '1.10'],
    ['2024.05.10', '2024.5.11'],
    ['1.0.0-rc.1', '1.0.0'],
    ['1.0.0-alpha', '1.0.0-alpha.1'],
    ['1.0.0-2', '1.0.0-10'],
    ['1.0.0-10', '1.0.0-a'],
    ['no version', '0.0.1'],
  ])('%s comes before %s', (lower, higher) => {
    expect(compareVersions(lower, higher)).toBeLessThan(0)
    expect(compareVersions(higher, lower)).toBeGreaterThan(0)
  })
  test.each([
    ['1.2', '1.2.0'],
    ['v1.2.0', '1.2'],
    ['2024.05.10', '2024.5.10'],
    ['1.0.0+a', '1.0.0+b'],
  ])('%s and %s are of equal precedence', (a, b) => {
    expect(compareVersions(a, b)).toBe(0)
  })
  test('the order of versions is total', () => {
    const version = fc
      .tuple(fc.nat(3), fc.nat(3), fc.nat(3), fc.constantFrom('', '-a', '-1', '-a.1'))
      .map(([a, b, c, pre]) => `${a}.${b}.${c}${pre}`)
    fc.assert(
      fc.property(version, version, version, (a, b, c) => {
        expect(Math.sign(compareVersions(a, b))).toBe(-Math.sign(compareVersions(b, a)) + 0)
        if (compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0)
          expect(compareVersions(a, c)).toBeLessThanOrEqual(0)
      }),
    )
  })
})

describe('dependsOn', () => {
  test.each([
    ['1.2.3', '1.2.3', true],
    ['1.2.0', '1.2', false], // exact means as written
    ['2024.05.13', '2024.05.13', true],
    ['3.4.0', '>=3.0 <4', true],
    ['4.0.0', '>=3.0 <4', false],
    ['1.9.1', '^1.2', true],
    ['2024.05.10', '>=2024.1', true],
    ['1.2.3', 'nonsense', false],
  ])('version %s satisfies %s: %s', (version, desired, expected) => {
    expect(satisfiesConstraint(version, desired)).toBe(expected)
  })
  test('text that is neither version nor range is recognized', () => {
    expect(isVersionOrRange('^1.2')).toBe(true)
    expect(isVersionOrRange('latest please')).toBe(false)
    expect(isVersionOrRange('')).toBe(false)
  })
})
