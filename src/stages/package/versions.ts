import satisfies from 'semver/functions/satisfies.js'
import validRange from 'semver/ranges/valid.js'

/**
 * Package versions: `v` optional, one to three numeric parts, leading zeros allowed (`2024.05.10`), `-pre`, `+build`.
 * Strictly ordered by semver precedence on the numbers; build metadata does not count.
 */
export type Version = { readonly numbers: readonly [bigint, bigint, bigint]; readonly prerelease: readonly string[] }

const syntax =
  /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/

/** The version, or undefined for other text. */
export function parseVersion(text: string): Version | undefined {
  const match = syntax.exec(text)
  if (!match) return undefined
  const [, major = '0', minor = '0', patch = '0', prerelease] = match
  return {
    numbers: [BigInt(major), BigInt(minor), BigInt(patch)],
    prerelease: prerelease === undefined ? [] : prerelease.split('.'),
  }
}

/** Semver precedence: negative, zero or positive. Text that is not a version sorts before every version. */
export function compareVersions(left: string, right: string): number {
  if (left === right) return 0
  const a = parseVersion(left)
  const b = parseVersion(right)
  if (!a || !b) return Number(a !== undefined) - Number(b !== undefined)
  for (const [index, number] of a.numbers.entries()) {
    const other = b.numbers[index] ?? 0n
    if (number !== other) return number < other ? -1 : 1
  }
  return comparePrerelease(a.prerelease, b.prerelease)
}

function comparePrerelease(a: readonly string[], b: readonly string[]): number {
  // a release comes after its pre-releases
  if (a.length === 0 || b.length === 0) return Number(b.length > 0) - Number(a.length > 0)
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const left = a[index]
    const right = b[index]
    if (left === undefined) return -1
    if (right === undefined) return 1
    if (left === right) continue
    const leftNumeric = /^\d+$/.test(left)
    const rightNumeric = /^\d+$/.test(right)
    if (leftNumeric && rightNumeric) {
      const difference = BigInt(left) - BigInt(right)
      if (difference !== 0n) return difference < 0n ? -1 : 1
      continue
    }
    if (leftNumeric !== rightNumeric) return leftNumeric ? -1 : 1
    return left < right ? -1 : 1
  }
  return 0
}

/** True when `version` satisfies a `dependsOn` value: exactly that string, or a version inside a semver range. */
export function satisfiesConstraint(version: string, constraint: string): boolean {
  if (version === constraint) return true
  if (parseVersion(constraint)) return false // an exact version is compared as written, as the operator does
  const normalized = normalize(version)
  return (
    normalized !== undefined &&
    validRange(constraint) !== null &&
    satisfies(normalized, constraint, { includePrerelease: true })
  )
}

/** True when the text can stand in `dependsOn`. */
export const isVersionOrRange = (text: string): boolean =>
  parseVersion(text) !== undefined || (text.trim() !== '' && validRange(text) !== null)

function normalize(version: string): string | undefined {
  const parsed = parseVersion(version)
  if (!parsed) return undefined
  const prerelease = parsed.prerelease.map((part) => (/^\d+$/.test(part) ? BigInt(part).toString() : part)).join('.')
  return parsed.numbers.join('.') + (prerelease === '' ? '' : `-${prerelease}`)
}
