import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { releaseNotes } from './notes.ts'
import { statedVersions } from './version.ts'

const changelog = `# Changelog

What a user notices.

## Unreleased

### Added

* What comes next.

## 0.2.0 - 2027-01-20

### Changed

* Nodes wait longer.
  A second line.

### Fixed

* A typo.

## [0.1.10]

* Something else.

## 0.1.0

Nobody wrote anything.
`

test('the notes of a release are its section of the changelog', () => {
  expect(releaseNotes(changelog, '0.2.0')).toBe(`# skyhookd 0.2.0

## Changed

* Nodes wait longer.
  A second line.

## Fixed

* A typo.
`)
})

test('the heading of a section may be in brackets and has no date before the release', () => {
  expect(releaseNotes(changelog, '0.1.10')).toBe('# skyhookd 0.1.10\n\n* Something else.\n')
})

test.each([
  ['without a section', '0.3.0', 'CHANGELOG.md has no section "## 0.3.0"'],
  ['whose number another one starts with', '0.1.1', 'CHANGELOG.md has no section "## 0.1.1"'],
  ['with an empty section', '0.1.0', 'the section "## 0.1.0" of CHANGELOG.md lists no change'],
])('a version %s has no notes', (_, version, message) => {
  expect(() => releaseNotes(changelog, version)).toThrow(message)
})

test('the changelog has notes for the version that package.json states', () => {
  const repository = join(import.meta.dirname, '../..')
  const { 'version in package.json': version = '' } = statedVersions(repository)
  const text = readFileSync(join(repository, 'CHANGELOG.md'), 'utf8')
  expect(text.indexOf('## Unreleased')).toBeLessThan(text.indexOf(`## ${version}`))
  expect(releaseNotes(text, version)).toContain('\n* ')
})
