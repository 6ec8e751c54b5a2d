/** `kubectl skyhook package run` on real throw-away hosts, made from the sandbox's base disk. */
import { spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundleCli } from '../../build/bundle.ts'
import { cacheFolder } from '../../build/cache.ts'
import { hasBus, hostOs } from '../sandbox/host-os.ts'
import { schemaErrors, schemaOf } from '../kit/pages/document-schemas.ts'
import { commandsOn, writeFilesOf } from '../kit/pages/page-examples.ts'
import { packageRun } from '../../src/cli/commands/package.ts'

const repository = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'package-run-'))
/** The bundle, outside of the repository: nothing of it may be needed. */
const main = join(folder, 'bin/kubectl-skyhook')
/** Where the tool puts its hosts. */
const runs = mkdtempSync(join(tmpdir(), 'runs-'))
const environment = { PATH: process.env['PATH'], HOME: folder, TMPDIR: runs }

const tool = (...parameters: string[]) =>
  spawnSync(process.execPath, [main, ...parameters], { cwd: folder, env: environment, encoding: 'utf8' })

beforeAll(async () => {
  await bundleCli(join(folder, 'bin'))
  const sandbox = (command: string) =>
    spawnSync(join(repository, 'bin/sandbox'), [command, ...(command === 'down' ? [] : ['host-1'])], {
      env: { ...process.env, SANDBOX: `package-run-${process.pid}` },
      stdio: 'inherit',
    })
  const isBase = (name: string) => new RegExp(`^base-${hostOs}-[0-9a-f]{12}$`).test(name)
  const bases = () => (existsSync(cacheFolder()) ? readdirSync(cacheFolder()) : []).filter(isBase)
  if (bases().length === 0) for (const command of ['host-up', 'down']) sandbox(command) // makes it
  symlinkSync(cacheFolder(bases()[0] ?? ''), join(folder, 'base'))
  expect(tool('package', 'init', 'my-tuning').status).toBe(0)
  writeFileSync(join(folder, 'greeting.txt'), 'hello\n')
})
afterAll(() => {
  rmSync(folder, { recursive: true })
  rmSync(runs, { recursive: true })
})

/** What a run could forget: folders, processes, cgroups, mounts. */
function traces(): string[] {
  const cgroups = spawnSync('find', ['/sys/fs/cgroup', '-maxdepth', '5', '-name', 'skyhook-run-*'], {
    encoding: 'utf8',
  })
  const processes = spawnSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' }).stdout.split('\n')
  return [
    ...readdirSync(runs),
    ...cgroups.stdout.split('\n').filter(Boolean),
    ...processes.filter((line) => line.includes('skyhook-run-')),
    ...readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes('skyhook-run-')),
  ]
}

/** A copy of the package with other texts in its files. */
function variant(name: string, changes: Readonly<Record<string, (text: string) => string>>): void {
  cpSync(join(folder, 'my-tuning'), join(folder, name), { recursive: true })
  for (const [file, change] of Object.entries(changes)) {
    const path = join(folder, name, file)
    const text = readFileSync(path, 'utf8')
    const changed = change(text)
    expect(changed).not.toBe(text)
    writeFileSync(path, changed)
  }
}

type Changes = readonly { readonly kind: string; readonly name: string; readonly change: string }[]
type Report = {
  readonly passed: boolean
  readonly from?: string
  readonly only?: string
  readonly acts: readonly { readonly name: string; readonly outcome: string; readonly detail: string }[]
  readonly leftBehind: Changes
  readonly ignored: Changes
}
function reportsOf(text: string): readonly Report[] {
  const document = JSON.parse(text) as { items: Report[] }
  expect(schemaErrors(schemaOf(packageRun), document)).toEqual([])
  return document.items
}

// systemd's own socket takes no caller from outside of the host's PID namespace
describe.runIf(hasBus)('on a base with a bus', () => {
  test('the example of the help runs: a new package lives through reboots, power cuts and its end', () => {
    const words = packageRun.example.split(' ').slice(2)
    const { status, stdout, stderr } = tool(...words, '--root', 'base')
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: expect.stringMatching(
        /^passed {6}interrupt reboot, killed in the middle\n(?:.*\n)*life of my-tuning 1\.0\.0: passed(?:, .*)?\n$/m,
      ) as string,
      stderr: '',
    })
    expect(traces()).toEqual([])
  })

  test('the example of docs/usage/packages.md lives through its stages, and what its root_dir brings goes with it', () => {
    writeFilesOf('usage/packages.md', folder)
    writeFileSync(join(folder, 'text'), 'ask before you reboot\n')
    const line = commandsOn('usage/packages.md').find((command) => command.includes('package run banner '))
    const words = line?.split(' ').slice(3) ?? []
    const { status, stdout, stderr } = tool(...words, '--root', 'base', '-o', 'json')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(reportsOf(stdout)).toMatchObject([{ passed: true, leftBehind: [] }])
    expect(traces()).toEqual([])
  })

  test('one stage of a package runs alone, with its own configmaps/ below the files of --config', () => {
    const seen = 'cat "$SKYHOOK_DIR/configmaps/greeting.txt" "$SKYHOOK_DIR/configmaps/default.conf" | tr "\\n" " "'
    variant('overlaid', {
      'skyhook_dir/config_check.sh': (text) => `${text}test "$(${seen})" = "hello of the image "\n`,
    })
    mkdirSync(join(folder, 'overlaid/configmaps'))
    for (const name of ['default.conf', 'greeting.txt'])
      writeFileSync(join(folder, 'overlaid/configmaps', name), 'of the image\n')
    const call = 'package run overlaid --config greeting.txt=greeting.txt --root base --only config -o json'
    const { status, stdout, stderr } = tool(...call.split(' '))
    expect({ status, stderr, stdout }).toEqual({ status: 0, stderr: '', stdout: expect.any(String) as string })
    const [report, ...others] = reportsOf(stdout)
    expect(others).toEqual([])
    expect(report).toMatchObject({ passed: true, only: 'config', leftBehind: [] })
    expect(report?.acts.map(({ name }) => name)).toEqual([
      'apply',
      'config-check before config',
      'config, killed in the middle',
      'config',
      'config, again',
    ])
  })

  test('what a package leaves behind is listed by name, on the way of an upgrade too', () => {
    variant('forgetful', {
      'config.json': (text) => text.replace('"package_version": "1.0.0"', '"package_version": "1.1.0"'),
      'skyhook_dir/apply.sh': (text) =>
        `${text}echo 61 >/proc/sys/vm/swappiness\necho 63 >/proc/sys/user/max_ipc_namespaces\ntouch /etc/forgotten\n`,
      // it starts with what the package was installed with
      'skyhook_dir/uninstall.sh': (text) => `${text}test -s "$SKYHOOK_DIR/configmaps/greeting.txt"\n`,
      'skyhook_dir/upgrade.sh': (text) =>
        `${text}echo 62 >/proc/sys/net/ipv4/ip_default_ttl\nsystemctl mask cron.service\n`,
    })
    const settings = ['vm/swappiness', 'user/max_ipc_namespaces'].map((name) => `/proc/sys/${name}`)
    const before = settings.map((path) => readFileSync(path, 'utf8'))
    const call = 'package run forgetful --from my-tuning --config greeting.txt=greeting.txt --root base'
    const interrupt = '--interrupt service --service foobar --ignore /etc/systemd -o json'
    const { status, stdout, stderr } = tool(...`${call} ${interrupt}`.split(' '))
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' })
    const [installation, upgrade] = reportsOf(stdout)
    expect(installation?.leftBehind).toEqual([
      { kind: 'file', name: '/etc/forgotten', change: 'added' },
      { kind: 'setting', name: 'net.ipv4.ip_default_ttl', change: 'changed' },
      { kind: 'setting', name: 'user.max_ipc_namespaces', change: 'changed' },
      { kind: 'setting', name: 'vm.swappiness', change: 'changed' },
    ])
    expect(upgrade).toMatchObject({ from: '1.0.0', passed: false })
    expect(upgrade?.leftBehind.map(({ name }) => name)).toEqual(['net.ipv4.ip_default_ttl'])
    for (const life of [installation, upgrade])
      expect(life?.ignored.map(({ name }) => name)).toEqual(['/etc/systemd/system/cron.service'])
    expect(upgrade?.acts.map(({ name }) => name)).toContain('restart of foobar, killed in the middle')
    expect(settings.map((path) => readFileSync(path, 'utf8'))).toEqual(before) // of this machine
    expect(traces()).toEqual([])
  })

  test('a step that cannot run twice fails the life, and so does one that stops the host', () => {
    variant('once', {
      'skyhook_dir/apply.sh': (text) => text.replace('mkdir -p "$folder"', 'sleep 1; mkdir "$folder"'),
    })
    const call = ['--config', 'greeting.txt=greeting.txt', '--root', 'base', '--interrupt', 'none']
    const once = tool('package', 'run', 'once', ...call, '-o', 'json')
    expect(once.status).toBe(1)
    const [life] = reportsOf(once.stdout)
    expect(life?.acts[1]).toMatchObject({ name: 'apply, killed in the middle', outcome: 'passed' })
    expect(life?.acts.at(-1)).toMatchObject({
      name: 'apply, again',
      outcome: 'failed',
      detail: expect.stringContaining('File exists') as string,
    })
    variant('stopping', { 'skyhook_dir/config.sh': (text) => `${text}systemctl poweroff\nsleep 30\n` })
    const stopping = tool('package', 'run', 'stopping', ...call)
    expect(stopping).toMatchObject({ status: 1, stderr: expect.stringContaining('the host ended by itself') as string })
    expect(traces()).toEqual([])
  })

  test.each([
    ['ctrl-C', 'SIGINT', 130],
    ['the death of the tool', 'SIGKILL', null],
  ] as const)('%s leaves nothing of the host', async (_, signal, code) => {
    variant(`slow-${signal}`, { 'skyhook_dir/apply.sh': (text) => `${text}sleep 60\n` })
    const parameters = ['package', 'run', `slow-${signal}`, '--config', 'greeting.txt=greeting.txt', '--root', 'base']
    const child = spawn(process.execPath, [main, ...parameters], { cwd: folder, env: environment })
    let stdout = ''
    child.stdout.on('data', (data: Buffer) => {
      stdout += data.toString()
      if (stdout.includes('apply, killed in the middle')) child.kill(signal) // the next one takes a minute
    })
    const ended = await new Promise((resolve) => void child.on('close', resolve))
    expect({ ended, stdout }).toEqual({
      ended: code,
      stdout: expect.stringContaining('killed in the middle') as string,
    })
    for (const deadline = Date.now() + 20_000; traces().length > 0 && Date.now() < deadline; ) await delay(200)
    expect(traces()).toEqual([])
  })
})
