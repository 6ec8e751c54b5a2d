import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../test/kit/files/temporary-folder.ts'
import { bundle } from '../bundle.ts'
import { readPins } from '../image.ts'
import type { Artifact } from './artifact.ts'
import { debianIngredients, fileIngredient, nodeIngredient, npmIngredients, readLockFile } from './ingredients.ts'
import { provenance } from './provenance.ts'
import { cycloneDx } from './sbom.ts'
import { cleanCommit } from './source.ts'

const repository = join(import.meta.dirname, '..', '..')
let work = ''
beforeEach(() => (work = temporaryFolder()))

const sha256 = 'a'.repeat(64)
const semver = { name: 'semver', version: '7.0.0', license: 'ISC', folder: '../other/node_modules/semver' }
const lock = { packages: { 'node_modules/semver': { integrity: 'sha512-qg==' } } }
const libc = [{ name: 'libc6', version: '2.36-9+deb12u14', sha256, file: '' }]
const ingredients = [
  ...npmIngredients([semver], lock),
  ...debianIngredients(libc, 'arm64', '12'),
  nodeIngredient(readPins(), 'amd64', { openssl: '3.5.8', modules: '147' }),
  fileIngredient('a.sh', sha256),
]
const artifact: Artifact = {
  name: 'tool.tgz',
  type: 'application',
  version: '0.1.0',
  subjects: [{ name: 'cli/tool.tgz', sha256 }],
  alsoMade: [{ name: 'tool:0.1.0', sha256: 'b'.repeat(64) }],
  ingredients,
  parameters: { registry: 'r.example.com/a' },
}

describe('what an artifact consists of', () => {
  const document = JSON.parse(cycloneDx(artifact)) as {
    metadata: { component: object }
    components: { name: string; 'bom-ref': string; components?: object[] }[]
    dependencies: object[]
  }
  const named = (name: string) => document.components.find((one) => one.name === name)

  test('the bill of materials has each ingredient with version, license, package URL and digest', () => {
    expect(document.metadata.component).toMatchObject({
      name: 'tool.tgz',
      version: '0.1.0',
      hashes: [{ alg: 'SHA-256', content: sha256 }],
    })
    expect(named('semver')).toEqual({
      type: 'library',
      'bom-ref': 'pkg:npm/semver@7.0.0',
      name: 'semver',
      version: '7.0.0',
      hashes: [{ alg: 'SHA-512', content: 'aa' }],
      licenses: [{ expression: 'ISC' }],
      purl: 'pkg:npm/semver@7.0.0',
    })
    expect(named('libc6')).toMatchObject({
      purl: 'pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=arm64&distro=debian-12',
      licenses: [{ expression: 'LGPL-2.1-or-later' }],
    })
    expect(named('Node.js')).toMatchObject({
      version: readPins().node.version,
      components: [{ name: 'openssl', version: '3.5.8' }],
    })
    const refs = document.components.map((one) => one['bom-ref'])
    expect(document.dependencies).toEqual([{ ref: 'tool.tgz', dependsOn: refs.toSorted() }])
  })

  test('the bill of materials of several files lists them', () => {
    const subjects = ['a', 'b'].map((name) => ({ name, sha256 }))
    expect(JSON.parse(cycloneDx({ ...artifact, subjects, ingredients: [] }))).toMatchObject({
      components: [
        { type: 'file', name: 'a' },
        { type: 'file', name: 'b' },
      ],
    })
  })

  test('every package in the agent and every Debian package in the image has a known license', async () => {
    const { packages } = await bundle({ folder: work })
    expect(npmIngredients(packages, readLockFile(repository)).length).toBeGreaterThan(10)
    const debian = Object.keys(readPins().debian.packages).map((name) => ({ name, version: '1', sha256, file: '' }))
    expect(debianIngredients(debian, 'amd64', '12')).toHaveLength(debian.length)
  })

  test('a package that the lock file does not know, or of an unknown license, is an error', () => {
    expect(() => npmIngredients([semver], { packages: {} })).toThrow('no digest of semver 7.0.0')
    const unlicensed = { ...semver, license: { type: 'MIT' } as unknown as string }
    expect(() => npmIngredients([unlicensed], lock)).toThrow('semver 7.0.0 states no license')
    expect(() => debianIngredients([{ name: 'bash', version: '5', sha256, file: '' }], 'amd64', '12')).toThrow(
      'the license of bash is unknown',
    )
  })
})

describe('how an artifact was made', () => {
  const builder = { commit: 'c'.repeat(40), lockFileSha256: sha256, tools: { node: 'v26.10.0', go: 'go1.26' } }
  const text = provenance(artifact, builder)

  test('the provenance names subjects, parameters, the commit and each material with its digest', () => {
    const { subject, predicate } = JSON.parse(text) as {
      subject: object
      predicate: { buildDefinition: { resolvedDependencies: { uri?: string; digest?: object }[] }; runDetails: object }
    }
    expect(subject).toEqual([
      { name: 'cli/tool.tgz', digest: { sha256 } },
      { name: 'tool:0.1.0', digest: { sha256: 'b'.repeat(64) } },
    ])
    expect(predicate).toMatchObject({
      buildDefinition: { externalParameters: { version: '0.1.0', registry: 'r.example.com/a' } },
      runDetails: { builder: { version: builder.tools } },
    })
    const { resolvedDependencies } = predicate.buildDefinition
    expect(resolvedDependencies.slice(0, 3)).toEqual([
      { name: 'sources', digest: { gitCommit: builder.commit } },
      { name: 'package-lock.json', digest: { sha256 } },
      { uri: 'pkg:npm/semver@7.0.0', digest: { sha512: 'aa' } },
    ])
    expect(resolvedDependencies.map(({ digest }) => digest)).not.toContain(undefined)
  })

  test('provenance and bill of materials name no time and no folder', () => {
    for (const one of [text, cycloneDx(artifact)]) {
      expect(one).not.toMatch(/\d{4}-\d\d-\d\dT|"timestamp"|"(?:started|finished)On"|"invocationId"|"serialNumber"/)
      expect(one).not.toContain(tmpdir())
      expect(one).not.toContain('node_modules')
    }
  })
})

describe('the sources of a release', () => {
  const git = (...parameters: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=R', '-c', 'user.email=r@example.com', ...parameters], {
      cwd: work,
      encoding: 'utf8',
    })

  test('a release is made of a commit, and of nothing beside it', () => {
    git('init', '-q')
    writeFileSync(join(work, 'a'), 'a')
    git('add', 'a')
    git('commit', '-q', '-m', 'A')
    expect(cleanCommit(work)).toBe(git('rev-parse', 'HEAD').trim())
    writeFileSync(join(work, 'b'), 'b')
    expect(() => cleanCommit(work)).toThrow(
      'the working tree must be a commit, got 1 changed or new files (b, …): commit or remove them',
    )
  })

  test('a folder without a repository is an error of git', () => {
    expect(() => cleanCommit(work)).toThrow(/git rev-parse failed in .*: .*not a git repository/)
  })
})
