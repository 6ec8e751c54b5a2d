import { expect, test } from 'vitest'
import { matchesGlob } from './merge.ts'

test.each([
  ['*', 'anything.sh', true],
  ['*', 'a/b', false],
  ['*.sh', 'apply.sh', true],
  ['*.sh', 'apply.conf', false],
  ['apply.sh', 'applyxsh', false],
  ['?.conf', 'a.conf', true],
  ['[ab].conf', 'b.conf', true],
  ['[^ab].conf', 'b.conf', false],
  ['[a-c]*', 'cat', true],
  ['\\*', '*', true],
  ['\\*', 'x', false],
  ['[', '[', false],
  ['a\\', 'a', false],
])('the pattern %s on %s matches: %s', (pattern, name, expected) => expect(matchesGlob(pattern, name)).toBe(expected))
