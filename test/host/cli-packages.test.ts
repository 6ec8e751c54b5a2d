/** The installable forms of kubectl skyhook, where they are meant to be used. */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { readVersion } from '../../build/bundle.ts'
import { goProgram } from '../../build/go-program.ts'
import { buildCliPackages, type CliPackages } from '../../build/cli-packages.ts'
import { npm } from '../../build/node-binary.ts'
import { useHost } from '../kit/cluster/systemd-host.ts'

const url = 'https://downloads.example.com/skyhook'
const work = mkdtempSync(join(tmpdir(), 'cli-packages-test-'))
let built: CliPackages

/** The first build fetches Node and Debian packages for arm64. */
const firstBuildMs = 900_000

beforeAll(async () => {
  const architectures = ['amd64', 'arm64'] as const
  built = await buildCliPackages({ out: join(work, 'one'), architectures, isLocked: false, url })
}, firstBuildMs)
afterAll(() => rmSync(work, { recursive: true, force: true }))

const archiveOf = (architecture: 'amd64' | 'arm64') => {
  const found = built.archives.find((one) => one.architecture === architecture)
  if (found === undefined) throw new Error(`there is no archive for ${architecture}`)
  return found
}
const sha256 = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')

/** Unpacks an archive and returns the folder in it. */
function unpacked(architecture: 'amd64' | 'arm64'): string {
  const { file, folder } = archiveOf(architecture)
  execFileSync('tar', ['-xzf', file, '-C', work])
  return join(work, folder)
}

test('the same sources give the same bytes, whatever the umask', async () => {
  const umask = process.umask(0o077)
  onTestFinished(() => void process.umask(umask))
  const again = await buildCliPackages({ out: join(work, 'two'), architectures: ['amd64'], isLocked: false, url })
  expect(again.archives.map(({ sha256 }) => sha256)).toEqual([archiveOf('amd64').sha256])
  expect(sha256(again.npm)).toBe(sha256(built.npm))
}, 300_000)

test('the archive for arm64 has the same files, and programs and libraries of arm64 only', () => {
  const [amd64, arm64] = [unpacked('amd64'), unpacked('arm64')]
  const names = (folder: string) => readdirSync(folder, { recursive: true }).map(String).toSorted()
  expect(names(arm64)).toEqual(
    names(amd64)
      .map((name) => name.replace('ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'))
      .toSorted(),
  )
  const machineOf = (file: string) => {
    const bytes = readFileSync(file)
    return bytes.subarray(0, 4).toString('latin1') === '\u007fELF' ? bytes.readUInt16LE(18) : undefined
  }
  const machines = (folder: string) =>
    new Set(
      names(folder)
        .filter((name) => !/^schemas$|^lib$|^licenses$/.test(name))
        .map((name) => machineOf(join(folder, name))),
    )
  // of the ELF header: 62 is x86-64, 183 AArch64
  expect(machines(amd64)).toEqual(new Set([62, undefined]))
  expect(machines(arm64)).toEqual(new Set([183, undefined]))
})

describe('on a host without Node', () => {
  const { host, sh } = useHost()

  test('the archive runs from a link on PATH, completes, and validates packages', async () => {
    const folder = '/opt/kubectl-skyhook'
    cpSync(unpacked('amd64'), await host.root.resolve(folder), { recursive: true })
    expect(await sh('command -v node || echo none')).toBe('none')
    await sh(`ln -s ${folder}/kubectl-skyhook ${folder}/kubectl_complete-skyhook /usr/local/bin/`)
    expect(await sh('kubectl-skyhook version --client-only')).toContain(readVersion())
    expect(await sh('kubectl_complete-skyhook node ho')).toMatch(/^hold\t.*\n:4$/)
    expect(
      await sh('cd /tmp && kubectl-skyhook package init my-tuning >/dev/null && kubectl-skyhook validate my-tuning'),
    ).toBe('my-tuning: package is valid')
    expect(await sh('kubectl-skyhook node list --skyhook x --server http://nowhere.invalid 2>&1 || echo $?')).toMatch(
      /nowhere\.invalid[^]*\n1$/,
    )
  })
})

test('the archive runs where nothing else is: no shell, no library, no loader', () => {
  const root = join(work, 'empty')
  mkdirSync(join(root, 'proc'), { recursive: true })
  cpSync(unpacked('amd64'), join(root, 'tool'), { recursive: true })
  const script = 'mount -t proc proc "$1/proc" && exec chroot "$1" /tool/kubectl-skyhook version --client-only -o json'
  const { status, stdout, stderr } = spawnSync(
    'unshare',
    ['--mount', '--pid', '--fork', 'sh', '-c', script, 'sh', root],
    { encoding: 'utf8' },
  )
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(JSON.parse(stdout)).toMatchObject({ items: [{ version: readVersion() }] })
})

test('npm installs the package globally, and both programs are on PATH', () => {
  const prefix = join(work, 'prefix')
  npm(['install', '--global', '--offline', '--no-audit', '--no-fund', '--prefix', prefix, built.npm], work)
  const environment = { PATH: `${prefix}/bin:${process.env['PATH']}` }
  const run = (program: string, ...parameters: string[]) =>
    execFileSync(join(prefix, 'bin', program), parameters, { env: environment, encoding: 'utf8' })
  expect(run('kubectl-skyhook', 'version', '--client-only')).toContain(readVersion())
  expect(run('kubectl_complete-skyhook', 'node', 'ho')).toMatch(/^hold\t.*\n:4\n$/)
  const names = readdirSync(join(prefix, 'lib/node_modules/kubectl-skyhook'))
  expect(names.toSorted()).toEqual(
    [
      'LICENSE',
      'THIRD-PARTY-LICENSES',
      'kubectl-skyhook',
      'kubectl-skyhook.cjs',
      'kubectl_complete-skyhook',
      'package.json',
      'schemas',
    ].toSorted(),
  )
})

describe('the manifest for krew', () => {
  test('krew installs the plugin by the manifest', async () => {
    const krew = await goProgram(join(import.meta.dirname, 'krew'))
    const env = { PATH: process.env['PATH'], HOME: work, KREW_ROOT: join(work, 'krew') }
    const install = ['install', `--manifest=${built.krew}`, `--archive=${archiveOf('amd64').file}`]
    execFileSync(krew, install, { env, stdio: 'pipe' })
    const program = join(work, 'krew/bin/kubectl-skyhook')
    expect(execFileSync(program, ['version', '--client-only'], { env, encoding: 'utf8' })).toContain(readVersion())
    expect(readdirSync(join(work, 'krew/store/skyhook', `v${readVersion()}`))).toContain('kubectl_complete-skyhook')
  }, 600_000) // the first time it is compiled

  type Platform = {
    selector: { matchLabels: object }
    uri: string
    sha256: string
    bin: string
    files: { from: string; to: string }[]
  }
  type Manifest = { spec: { platforms: Platform[] } & Record<string, unknown> }
  const manifest = () => parse(readFileSync(built.krew ?? '', 'utf8')) as Manifest

  test('the manifest has what krew requires, under the name of the plugin', () => {
    expect(built.krew).toMatch(/\/skyhook\.yaml$/)
    expect(manifest()).toMatchObject({
      apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
      kind: 'Plugin',
      metadata: { name: 'skyhook' },
      spec: {
        version: `v${readVersion()}`,
        shortDescription: expect.stringMatching(/^[^\n]{1,50}$/) as string,
        homepage: url,
      },
    })
    // in the words of its documentation: a semantic version with a v, each platform by os and arch
    expect(manifest().spec['version']).toMatch(/^v\d+\.\d+\.\d+(-[\w.]+)?$/)
    expect(manifest().spec.platforms.map(({ selector }) => selector.matchLabels)).toEqual([
      { os: 'linux', arch: 'amd64' },
      { os: 'linux', arch: 'arm64' },
    ])
  })

  test('the manifest names each archive with its digest, and what it takes out of it is there', () => {
    for (const [index, { uri, sha256: digest, files, bin }] of manifest().spec.platforms.entries()) {
      const { file, fileName } = built.archives[index] ?? archiveOf('amd64')
      expect(uri).toBe(`${url}/${fileName}`)
      expect(digest).toBe(sha256(file))
      expect(digest).toMatch(/^[0-9a-f]{64}$/)
      const listed = execFileSync('tar', ['-tvzf', file], { encoding: 'utf8' }).trimEnd().split('\n')
      // krew unpacks files and folders, and refuses all else
      expect(listed.filter((line) => !/^[-d]/.test(line))).toEqual([])
      const from = files[0]?.from.replace('*', bin)
      expect(listed.some((line) => line.startsWith('-rwxr-xr-x') && line.endsWith(` ${from}`))).toBe(true)
      expect(files).toEqual([{ from: `${fileName.replace('.tar.gz', '')}/*`, to: '.' }])
    }
  })
})
