/**
 * A second user of the host, who exchanges links for whatever root touches in that user's folders. Needs root, to be
 * both; no host is booted.
 */
import { spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { failureTail } from '../../src/packages/step/output-reader.ts'
import { temporaryFolder } from '../kit/files/temporary-folder.ts'
import { systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { createHostRoot, type HostRoot } from '../../src/host/fs/host-root.ts'
import { collectCopyDirs, ensureCopyDir } from '../../src/packages/install/copy-dir.ts'
import { installRootDir, sweepRootDirs, uninstallRootDir } from '../../src/packages/install/root-dir.ts'
import { rootDirRecordFile } from '../../src/packages/install/root-dir-record.ts'
import {
  publishCheckResults,
  publishStart,
  publishStepFlag,
  removeStepFlags,
} from '../../src/packages/operator-compat/flags.ts'
import { readHistory, recordVersion } from '../../src/packages/operator-compat/history.ts'
import { claimLogFiles, packageLogDir, pruneLogs } from '../../src/packages/step/log-files.ts'
import { readPackageStatus } from '../../src/packages/step/status-file.ts'
import type { PackageConfig, Step } from '../../src/schemas/package-config.ts'

const nobody = 65534
const swapper = new URL('../kit/files/link-swapper.ts', import.meta.url).pathname
const secret = 'the-hash-of-a-password'
const store = '/var/lib/skyhook/.agent/packages/abc'
const record = rootDirRecordFile('demo', 'tuning')
const folders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }
const state = '/var/lib/skyhook/demo'
const copyDir = `${state}/tuning-1.0.0-01234567-89ab-4def-8123-456789abcdef-1`
const step: Step = {
  name: 'run',
  path: 'run.sh',
  arguments: [],
  returncodes: [0],
  on_host: true,
  idempotence: 'step',
  upgrade_step: false,
} as unknown as Step
const config: PackageConfig = { packageName: 'tuning', packageVersion: '1.0.0', expectedConfigFiles: [], modes: {} }
const logs = packageLogDir(folders, 'demo', config)

let mount: string
let host: HostRoot
beforeEach(() => {
  mount = temporaryFolder()
  chmodSync(mount, 0o755)
  host = createHostRoot(mount, systemRandom)
  for (const folder of ['etc', 'root', 'usr/lib', 'srv/private', 'var/lib/skyhook/.agent', 'var/log/skyhook', 'run'])
    mkdirSync(join(mount, folder), { recursive: true })
  chmodSync(join(mount, 'srv/private'), 0o700)
  symlinkSync('usr/lib', join(mount, 'lib'))
  for (const path of ['etc/shadow', 'root/key', 'srv/private/data']) put(path, secret, 0o600)
  put('etc/passwd', 'root:x:0:0\n')
  for (const path of ['tmp', 'var/tmp']) {
    mkdirSync(join(mount, path))
    chmodSync(join(mount, path), 0o1777)
  }
})

function put(path: string, content: string | Buffer, mode = 0o644): void {
  mkdirSync(dirname(join(mount, path)), { recursive: true })
  writeFileSync(join(mount, path), content)
  chmodSync(join(mount, path), mode)
}

/** A folder of the second user, with the folders above it. */
function give(path: string): string {
  mkdirSync(join(mount, path), { recursive: true })
  chownSync(join(mount, path), nobody, nobody)
  return join(mount, path)
}

/** Everything below the folders: who owns it, its mode, its content. */
function look(...names: readonly string[]): Record<string, string> {
  const seen: Record<string, string> = {}
  const collect = (path: string): void => {
    const { uid, gid, mode } = lstatSync(path)
    const isFolder = lstatSync(path).isDirectory()
    const content = isFolder ? '' : lstatSync(path).isSymbolicLink() ? readlinkSync(path) : readFileSync(path, 'utf8')
    seen[path.slice(mount.length)] = `${uid}:${gid} ${mode.toString(8)} ${content.slice(0, 80)}`
    if (isFolder) for (const name of readdirSync(path)) collect(join(path, name))
  }
  for (const name of names) collect(join(mount, name))
  return seen
}

/** Starts the second user, and answers with what stops it and says how often it exchanged something. */
async function startSwapper(ownFolders: readonly string[]): Promise<() => Promise<number>> {
  const stopFile = join(mount, 'stop')
  const targets = [join(mount, 'etc/shadow'), join(mount, 'etc')]
  const own = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', process.execPath, swapper]
  const [program = '', ...args] = [...own, stopFile, ...targets, ...ownFolders]
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], cwd: '/' })
  let output = ''
  child.stdout.on('data', (bytes: Buffer) => (output += bytes.toString()))
  const ended = new Promise((resolve) => child.once('close', resolve))
  await new Promise((resolve) => child.stdout.once('data', resolve))
  return async () => {
    writeFileSync(stopFile, '')
    await ended
    rmSync(stopFile)
    return Number(output.replace('started\n', ''))
  }
}

/** What root said: results and errors, as they would be published. */
const said: unknown[] = []
async function attempt<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    const result = await act()
    said.push(result)
    return result
  } catch (error) {
    said.push(String(error))
    return undefined
  }
}

/** No file that the second user can read has the secret, and neither has anything that root said. */
function expectNothingTold(): void {
  const isReadable = (path: string): boolean => {
    const { uid, mode } = lstatSync(join(mount, path))
    return uid === nobody || (mode & 0o004) !== 0
  }
  const all = Object.entries(look(...['home', 'tmp', 'var', 'run'].filter((name) => existsSync(join(mount, name)))))
  const told = all.filter(([path, seen]) => seen.includes(secret) && isReadable(path))
  expect(told).toEqual([])
  expect(JSON.stringify(said)).not.toContain(secret)
}

test('another user who exchanges links gets nothing of root, whatever root installs there', async () => {
  const own = ['home/app', 'home/app/.cache', 'home/app/tree', 'home/app/tree/deep'].map(give)
  for (const path of ['home/app/.cache/model.bin', 'home/app/tree/deep/a.conf', 'tmp/b.conf', 'lib/c.conf'])
    put(`${store}/root_dir/${path}`, path.endsWith('.bin') ? Buffer.alloc(8 << 20, 1) : 'of the package')
  symlinkSync('a.conf', join(mount, store, 'root_dir/home/app/tree/deep/link'))
  const before = look('etc', 'root', 'srv')
  const stop = await startSwapper([...own, join(mount, 'tmp')])
  for (let round = 0; round < 30; round++) {
    await attempt(() => installRootDir(host, store, record))
    await attempt(() => sweepRootDirs(host))
    await attempt(() => uninstallRootDir(host, record))
    put(`${store}/root_dir/tmp/round`, String(round)) // another content each time
  }
  expect(await stop()).toBeGreaterThan(50)
  expect(look('etc', 'root', 'srv')).toEqual(before)
  expectNothingTold()
  for (const folder of ['home', 'tmp']) rmSync(join(mount, folder), { recursive: true }) // with the last links
  expect(await installRootDir(host, store, record)).toMatchObject({ outcome: 'copied' })
})

test('another user to whom a step gave its folders gets nothing of root by what the agent keeps there', async () => {
  const own = [state, `${state}/flags`, `${state}/flags/tuning`, `${state}/flags/tuning/1.0.0`, `${state}/history`]
  const copied = [copyDir, `${copyDir}/skyhook_dir`, `${copyDir}/configmaps`, `${copyDir}/node-metadata`]
  const more = [`${state}/status`, logs, '/run/app']
  const given = [...own, ...copied, ...more].map(give)
  put(`${store}/skyhook_dir/run.sh`, '#!/bin/sh\n', 0o755)
  put(`${store}/skyhook_dir/big`, Buffer.alloc(4 << 20, 1))
  put(`${store}/config.json`, '{}')
  const before = look('etc', 'root', 'srv')
  const stop = await startSwapper(given)
  let kept = 0
  for (let round = 0; round < 30; round++) {
    const text = String(round)
    const attempts: (() => Promise<unknown>)[] = [
      async () =>
        await ensureCopyDir({
          host,
          store,
          digest: `sha256:${text}`,
          copyDir,
          stepPaths: ['run.sh'],
          configMap: { key: text },
          nodeMetadata: { labels: text, annotations: text, packages: text },
          nowMs: round,
        }),
      async () => await publishStart(host, state),
      async () => await publishStepFlag(host, state, config, step, round),
      async () => await publishCheckResults(host, state, 'apply-check', [{ path: text, failed: false }]),
      async () => await recordVersion(host, state, 'tuning', text, round),
      async () => await readHistory(host, state, 'tuning'),
      async () => await readPackageStatus(host, folders, 'demo', 'tuning'),
      async () => {
        const files = await claimLogFiles(host, logs, 'run.sh', round * 1000)
        return await failureTail(host, files, [])
      },
      async () => await pruneLogs(host, logs, 'run.sh'),
      async () => await host.writeFile('/run/app/step.env', text, 0o600),
      async () => await host.remove('/run/app/step.env'),
      async () => await removeStepFlags(host, state, config),
      ...(round % 10 === 9 ? [async () => await collectCopyDirs(host, folders, 'demo', () => false)] : []),
    ]
    for (const act of attempts) if ((await attempt(act)) !== undefined) kept++
  }
  expect(await stop()).toBeGreaterThan(50)
  expect(look('etc', 'root', 'srv')).toEqual(before)
  expectNothingTold()
  expect(kept).toBeGreaterThan(0)
})

test('a link that another user made before is not followed, and the package says so', async () => {
  put(`${store}/root_dir/tmp/installer.conf`, 'x=1')
  symlinkSync('../etc/shadow', join(mount, 'tmp/installer.conf'))
  lchownSync(join(mount, 'tmp/installer.conf'), nobody, nobody)
  const before = look('etc', 'root', 'srv')
  expect(await installRootDir(host, store, record)).toMatchObject({ outcome: 'conflict' })
  expect(await uninstallRootDir(host, record)).toEqual([])
  expect(look('etc', 'root', 'srv')).toEqual(before)
})

test('links of root lead on, as on hosts whose /lib is a link', async () => {
  put(`${store}/root_dir/lib/c.conf`, 'of the package')
  expect(await installRootDir(host, store, record)).toMatchObject({ outcome: 'copied' })
  expect(readFileSync(join(mount, 'usr/lib/c.conf'), 'utf8')).toBe('of the package')
})
