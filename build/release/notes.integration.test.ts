import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { commitsOf, releaseNotes } from './notes.ts'

describe('the notes of a release', () => {
  const commit = (subject: string, ...paths: readonly string[]) => ({ hash: 'abcdef123456', subject, paths })

  test('the notes have each commit once, below the first area that it touches', () => {
    const commits = [
      commit('Mend the tool', 'src/cli/main.ts', 'docs/usage/cli.md'),
      commit('Wait longer', 'src/lease/rule.ts', 'src/cli/main.ts'),
      commit('Test the tool', 'src/cli/framework/parse.test.ts'),
      commit('Set a limit', 'chart/values.yaml'),
      commit('Restart chrony', 'packages/tuning/config.json'),
      commit('Change nothing'),
    ]
    expect(releaseNotes('0.2.0', 'v0.1.0', commits)).toBe(`# skyhookd 0.2.0

Changes since v0.1.0.

## Agent

* Wait longer (abcdef123456)

## Command-line tool

* Mend the tool (abcdef123456)

## Chart, resource definitions and manifests

* Set a limit (abcdef123456)

## Packages

* Restart chrony (abcdef123456)

## Build, tests and documentation

* Test the tool (abcdef123456)
* Change nothing (abcdef123456)
`)
  })

  test('the notes of the first release say so', () => {
    expect(releaseNotes('0.1.0', undefined, [])).toBe('# skyhookd 0.1.0\n\nThe first release.\n')
  })
})

describe('the commits of a release', () => {
  let work = ''
  beforeEach(() => {
    work = mkdtempSync(join(tmpdir(), 'notes-'))
    git('init', '-q', '-b', 'main')
  })
  afterEach(() => rmSync(work, { recursive: true }))

  function git(...parameters: readonly string[]): void {
    const who = ['-c', 'user.name=R', '-c', 'user.email=r@example.com', '-c', 'commit.gpgsign=false']
    execFileSync('git', [...who, ...parameters], { cwd: work, stdio: 'ignore' })
  }
  function change(subject: string, path: string): void {
    mkdirSync(dirname(join(work, path)), { recursive: true })
    writeFileSync(join(work, path), subject)
    git('add', '-A')
    git('commit', '-q', '-m', subject)
  }
  const subjects = (version: string) => commitsOf(work, version).commits.map(({ subject }) => subject)

  test('the first release has all commits, with what they changed and without merges', () => {
    change('One', 'file one')
    git('checkout', '-q', '-b', 'side')
    change('Two', 'side')
    git('checkout', '-q', 'main')
    git('merge', '-q', '--no-ff', '-m', 'Merge', 'side')
    const { previous, commits } = commitsOf(work, '0.1.0')
    expect(previous).toBeUndefined()
    expect(commits).toMatchObject([
      { subject: 'Two', paths: ['side'] },
      { subject: 'One', paths: ['file one'] },
    ])
    expect(commits[0]?.hash).toMatch(/^[0-9a-f]{12}$/)
  })

  test('a release has the commits since the release before, whether its own tag is there or not', () => {
    for (const version of ['0.9.0', '0.10.0', '0.11.0']) {
      change(`For ${version}`, 'file')
      git('tag', `v${version}`)
    }
    git('tag', 'vacation')
    expect(subjects('0.11.0')).toEqual(['For 0.11.0'])
    git('tag', '-d', 'v0.11.0')
    expect(subjects('0.11.0')).toEqual(['For 0.11.0'])
    expect(commitsOf(work, '0.11.0').previous).toBe('v0.10.0')
  })

  test('a clone without the whole history is refused', () => {
    change('One', 'a')
    change('Two', 'a')
    git('clone', '-q', '--depth', '1', `file://${work}`, 'shallow')
    expect(() => commitsOf(join(work, 'shallow'), '0.1.0')).toThrow('the notes need the whole history')
  })
})
