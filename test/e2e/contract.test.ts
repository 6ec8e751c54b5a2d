/** What packages rely on, on a real host: the input of a step, its files and logs, and what an uninstall removes. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import type { PackageSpec } from '../../src/schemas/skyhook.ts'
import { fixturePackages, uniqueName, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import { paths, ignoreNotFound } from '../kit/cluster/kube.ts'
import { lockNodes, type OnTestFinished } from '../kit/cluster/node-locks.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import { manifest, shellscript, publishedState } from '../kit/cluster/skyhooks.ts'

const cluster = useCluster()
const state = '/var/lib/skyhook'

async function start(
  node: NodeName,
  packages: Record<string, PackageSpec>,
  onTestFinished: OnTestFinished,
): Promise<string> {
  const name = uniqueName('contract')
  onTestFinished(async () => await cluster.remove(name))
  await cluster.apply(manifest(name, { packages }), node)
  return name
}

const completes = async (node: NodeName, name: string): Promise<unknown> =>
  await cluster.history.eventually(`${name} is complete`, (view) => isCompleteOn(view, name, [node]), 30_000)

async function change(node: NodeName, name: string, packages: object): Promise<void> {
  const before = publishedState(cluster.history.now.nodes.get(node), name).companion?.applied
  await cluster.edit(name, { packages })
  await cluster.history.eventually(
    `${name} is complete for another spec`,
    ({ nodes }) => {
      const { status, companion } = publishedState(nodes.get(node), name)
      return status === 'complete' && companion?.applied !== before
    },
    30_000,
  )
}

/** Pushes the package `shellscript` with additional files, which `fill` writes. */
async function pushImage(image: string, fill: (folder: string) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'contract-'))
  try {
    cpSync(join(fixturePackages, 'shellscript'), folder, { recursive: true })
    fill(folder)
    await cluster.sandbox.must(['push', folder, image])
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A package whose steps record their input: `<out>.<mode>`, one `name=value` per line. */
function writeCurious(folder: string, version: string, out: string): void {
  const step = (mode: string, args: readonly string[], more: object = {}): object => ({
    name: mode,
    path: `${mode}.sh`,
    arguments: args,
    returncodes: [0],
    on_host: true,
    env: { LAYER: 'step' },
    idempotence: true,
    upgrade_step: false,
    ...more,
  })
  const modes = {
    apply: [step('apply', ['apply', 'env:WHERE', 'not env:WHERE', ''])],
    'apply-check': [step('check', [])],
    upgrade: [step('upgrade', [], { upgrade_step: true })],
    'upgrade-check': [step('check', [])],
  }
  const config = {
    schema_version: 'v1',
    package_name: 'curious',
    package_version: version,
    expected_config_files: [],
    modes,
  }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
  const script = (mode: string): string => `#!/bin/bash
    { printf 'arguments='; printf '[%s]' "$@"; echo; echo "cwd=$PWD"; echo "user=$(id -u)"
      env -0 | tr '\\n\\0' '|\\n'
      unit=$(sed -n 's,.*/,,p' /proc/self/cgroup | grep -m 1 skyhookd)
      systemctl show "$unit" -p MemoryMax -p CPUQuotaPerSecUSec; } >${out}.${mode}\n`
  for (const mode of ['apply', 'upgrade']) writeFileSync(join(folder, 'skyhook_dir', `${mode}.sh`), script(mode))
  writeFileSync(join(folder, 'skyhook_dir/check.sh'), '#!/bin/sh\n')
}

describe.concurrent('a package', () => {
  test('a package copies its root_dir over the host’s root, and its uninstall removes what nobody changed', async ({
    onTestFinished,
    expect,
  }) => {
    const node = 'node-1'
    await lockNodes(onTestFinished, node)
    const image = `test/${uniqueName('rooted')}`
    const own = uniqueName('rooted')
    const file = (path: string): string => `/usr/local/share/${own}/${path}`
    for (const version of ['1.0.0', '2.0.0'])
      await pushImage(`${image}:${version}`, (folder) => {
        const root = join(folder, 'root_dir/usr/local/share', own)
        mkdirSync(root, { recursive: true, mode: 0o700 })
        writeFileSync(join(root, 'both'), 'same', { mode: 0o640 })
        writeFileSync(join(root, `of-${version}`), version)
        writeFileSync(join(root, 'edited'), version)
        symlinkSync('both', join(root, 'link'))
        mkdirSync(join(folder, 'root_dir/tmp'), { mode: 0o700 }) // the host's own folder keeps its mode
      })
    const host = cluster.host(node)
    const list = async (): Promise<string[]> => await host.list(file(''))
    const at = (version: string): PackageSpec => ({ version, image: `${cluster.registry}/${image}` })
    const name = await start(node, { work: at('2.0.0') }, onTestFinished)
    await completes(node, name)
    expect(await list()).toEqual(['both', 'edited', 'link', 'of-2.0.0'])
    expect(
      (await host.exec('stat', '-c', '%a %F', file('both'), file('link'), '/tmp')).split('\n').slice(0, 3),
    ).toEqual(['640 regular file', '777 symbolic link', '1777 directory'])

    await change(node, name, { work: at('1.0.0') }) // uninstall of the one, apply of the other
    expect(await list()).toEqual(['both', 'edited', 'link', 'of-1.0.0'])

    await host.write(file('edited'), 'by an administrator')
    await change(node, name, { work: null })
    await expect.poll(list).toEqual(['edited'])
    await host.remove(file(''))
  })

  test('a package sees the keys of its configMap over its own configmaps/, and its own file when a key is removed', async ({
    onTestFinished,
    expect,
  }) => {
    const node = 'node-1'
    await lockNodes(onTestFinished, node)
    const image = `test/${uniqueName('overlaid')}`
    const out = `/var/tmp/${uniqueName('overlaid')}`
    const host = cluster.host(node)
    onTestFinished(async () => await host.remove(out))
    await pushImage(`${image}:1.1.0`, (folder) => {
      const config = join(folder, 'config.json')
      const expected = ['default.conf', 'same.conf', 'other.conf']
      const content = JSON.parse(readFileSync(config, 'utf8')) as object
      writeFileSync(config, JSON.stringify({ ...content, expected_config_files: expected }))
      mkdirSync(join(folder, 'configmaps'))
      for (const name of ['default', 'same'])
        writeFileSync(join(folder, 'configmaps', `${name}.conf`), 'of the image\n')
    })
    const configMap = {
      'config.sh': `cd "$SKYHOOK_DIR/configmaps" && grep -H . *.conf >${out}`,
      'same.conf': 'of the Skyhook\n',
      'other.conf': 'of the Skyhook\n',
    }
    const work = { version: '1.1.0', image: `${cluster.registry}/${image}`, configMap }
    const name = await start(node, { work }, onTestFinished)
    await completes(node, name)
    const own = 'default.conf:of the image'
    expect(await host.lines(out)).toEqual([own, 'other.conf:of the Skyhook', 'same.conf:of the Skyhook'])

    await change(node, name, { work: { configMap: { 'same.conf': null } } })
    expect(await host.lines(out)).toEqual([own, 'other.conf:of the Skyhook', 'same.conf:of the image'])
  })

  test('a package leaves one copy dir and one image after any number of changes', async ({
    onTestFinished,
    expect,
  }) => {
    const node = 'node-2'
    await lockNodes(onTestFinished, node)
    const image = `test/${uniqueName('changed')}`
    for (const version of ['1.0.0', '1.1.0', '1.2.0'])
      await pushImage(`${image}:${version}`, (folder) =>
        writeFileSync(join(folder, 'unlike-any-other'), `${image} ${version}`),
      )
    const host = cluster.host(node)
    const images = async (): Promise<string[]> => await host.list(`${state}/.agent/images`)
    const at = (version: string, word: string): PackageSpec => ({
      version,
      image: `${cluster.registry}/${image}`,
      configMap: { 'config.sh': `: ${word}` },
    })
    const name = await start(node, { work: at('1.0.0', 'a') }, onTestFinished)
    await completes(node, name)
    const before = await images()
    for (const [version, word] of [
      ['1.0.0', 'b'],
      ['1.1.0', 'b'],
      ['1.2.0', 'b'],
      ['1.2.0', 'c'],
    ] as const)
      await change(node, name, { work: at(version, word) })
    const copies = async (): Promise<number> =>
      (await host.list(`${state}/${name}`)).filter((found) => found.startsWith('work-')).length
    await expect.poll(copies).toBe(1)
    await expect.poll(async () => (await images()).length).toBeLessThanOrEqual(before.length)
  })

  test('a package writes its logs through an absolute symlink of the host', async ({ onTestFinished }) => {
    const node = 'node-3'
    await lockNodes(onTestFinished, node)
    const host = cluster.host(node)
    const name = uniqueName('linked')
    const moved = `/srv/${name}`
    await host.exec(
      'sh',
      '-ec',
      `mkdir -p ${moved}/log ${moved}/state /var/log/skyhook ${state}
      ln -s ${moved}/log /var/log/skyhook/${name}; ln -s ${moved}/state ${state}/${name}`,
    )
    onTestFinished(async () => await cluster.remove(name))
    await cluster.apply(
      manifest(name, { packages: { work: shellscript(cluster.registry, { apply: 'echo output; pwd -P' }) } }),
      node,
    )
    await completes(node, name)
    const folder = `${moved}/log/shellscript/1.1.0`
    const logs = (await host.list(folder)).filter((file) => file.endsWith('.log'))
    const lines = (await Promise.all(logs.map(async (file) => await host.lines(`${folder}/${file}`)))).flat()
    expect(lines).toContain('output')
    expect(lines).toContainEqual(expect.stringMatching(new RegExp(`^${moved}/state/work-1\\.1\\.0-`)) as string)
    expect(await host.list(`${moved}/state`)).toEqual(expect.arrayContaining(['flags', 'history']))
  })
})

describe.concurrent('a step', () => {
  test('a step gets variables, arguments, folders and limits as the contract says, and versions during an upgrade', async ({
    onTestFinished,
  }) => {
    const node = 'node-3'
    await lockNodes(onTestFinished, node)
    const host = cluster.host(node)
    const image = `test/${uniqueName('curious')}`
    const out = `/var/tmp/${uniqueName('curious')}`
    onTestFinished(async () => await host.remove(out))
    for (const version of ['1.0.0', '2.0.0'])
      await pushImage(`${image}:${version}`, (folder) => writeCurious(folder, version, out))
    const env = [
      { name: 'GREETING', value: 'two\nlines and $$(NODE)' },
      { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      { name: 'WHERE', value: 'on $(NODE)' },
      { name: 'LAYER', value: 'package' },
    ]
    const resources = { cpuRequest: '100m', cpuLimit: '500m', memoryRequest: '32Mi', memoryLimit: '64Mi' }
    const at = (version: string): PackageSpec => ({ version, image: `${cluster.registry}/${image}`, env, resources })
    const name = await start(node, { work: at('1.0.0') }, onTestFinished)
    await completes(node, name)
    const inputOf = async (mode: string): Promise<Record<string, string>> =>
      Object.fromEntries(
        (await host.lines(`${out}.${mode}`)).map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]),
      )
    const uid = (await ignoreNotFound<{ metadata: { uid: string } }>(cluster.api, 'GET', `${paths.skyhooks}/${name}`))
      ?.metadata.uid
    const dir = `${state}/${name}/work-1.0.0-${uid}-1`
    const apply = await inputOf('apply')
    expect(apply).toMatchObject({
      arguments: `[apply][on ${node}][not env:WHERE][]`,
      cwd: dir,
      STEP_ROOT: `${dir}/skyhook_dir`,
      SKYHOOK_DIR: dir,
      SKYHOOK_ROOT_DIR: `${state}/${name}`,
      SKYHOOK_LOG_DIR: `/var/log/skyhook/${name}`,
      SKYHOOK_RESOURCE_ID: `${name}-${uid}-1_work_1.0.0`,
      HOME: '/root',
      LAYER: 'step',
      GREETING: 'two|lines and $(NODE)',
      MemoryMax: String(64 * 1024 * 1024),
      CPUQuotaPerSecUSec: '500ms',
      user: '0',
    })
    expect(apply).not.toHaveProperty('PREVIOUS_VERSION')
    // nothing of the agent's own
    expect(Object.keys(apply).filter((key) => /KUBERNETES|POD_|NODE_NAME/.test(key))).toEqual([])

    await change(node, name, { work: at('2.0.0') })
    expect(await inputOf('upgrade')).toMatchObject({
      arguments: '[1.0.0][2.0.0]',
      PREVIOUS_VERSION: '1.0.0',
      CURRENT_VERSION: '2.0.0',
    })
  })

  test('a step that exceeds stageTimeout is killed with its children, and the reason says so', async ({
    onTestFinished,
  }) => {
    const node = 'node-1'
    await lockNodes(onTestFinished, node)
    const host = cluster.host(node)
    const mark = `30${Math.floor(Math.random() * 1e6)}`
    const work = shellscript(
      cluster.registry,
      { apply: `sleep ${mark} & sleep ${mark}` },
      { stageTimeout: '2s', gracefulShutdown: '1s' },
    )
    const name = await start(node, { work }, onTestFinished)
    const reasonMessage = (): string => publishedState(cluster.history.now.nodes.get(node), name).reason?.message ?? ''
    await cluster.history.eventually('the reason names it', () =>
      reasonMessage().includes("ran longer than the package's stageTimeout"),
    )
    expect(await host.exec('sh', '-c', `pgrep -fc 'sleep ${mark}' || true`)).toMatch(/^[01]\n$/) // pgrep's own shell
    await cluster.edit(name, { packages: { work: { configMap: { 'apply.sh': 'true' }, stageTimeout: '1m' } } })
    await completes(node, name)
  })

  test('the output of a finished step appears in the log of the agent', async ({ onTestFinished }) => {
    const node = 'node-3'
    await lockNodes(onTestFinished, node)
    const many = 'seq -f "line %.0f of many, which are more than a log should have" 2000'
    const work = shellscript(cluster.registry, { apply: `echo done; echo beware >&2`, config: many })
    const name = await start(node, { work }, onTestFinished)
    await completes(node, name)
    const agents = ['-n', 'skyhook', 'logs', '-l', 'app.kubernetes.io/name=skyhookd', '--tail=-1']
    const of = { skyhook: name, package: 'work', version: '1.1.0', step: 'shellscript_run.sh', node }
    const line = (stream: string, message: string): unknown =>
      expect.objectContaining({ ...of, mode: 'apply', stream, message })
    // the agent prints it beside what comes after the step, so the node may be complete a moment before
    const look = async (): Promise<void> => {
      const lines = (await cluster.sandbox.kubectl(agents))
        .split('\n')
        .flatMap((text) => (text.includes(`"${name}"`) ? [JSON.parse(text) as Record<string, unknown>] : []))
      expect(lines).toContainEqual(line('stdout', 'done'))
      expect(lines).toContainEqual(line('stderr', 'beware'))
      const ofConfig = lines.filter(({ mode, stream }) => mode === 'config' && stream === 'stdout')
      expect(ofConfig[0]).toMatchObject({ log: expect.stringMatching(/^\/var\/log\/skyhook\/.*\.log$/) as string })
      expect(ofConfig.at(-1)?.['message']).toMatch(/^line 2000 of many/)
      expect(ofConfig.length).toBeLessThan(1_100)
    }
    await vi.waitFor(look, { timeout: 10_000, interval: 500 })
  })

  test('a failed step that prints a secret exposes it nowhere', async ({ onTestFinished }) => {
    const node = 'node-2'
    await lockNodes(onTestFinished, node)
    const host = cluster.host(node)
    const secret = uniqueName('token')
    const value = `open-sesame-${secret}`
    const path = '/api/v1/namespaces/skyhook/secrets'
    onTestFinished(async () => void (await ignoreNotFound(cluster.api, 'DELETE', `${path}/${secret}`)))
    await cluster.api.json('POST', path, { body: { metadata: { name: secret }, stringData: { key: value } } })
    const work = shellscript(
      cluster.registry,
      { apply: 'echo "the token is $TOKEN" >&2; exit 9' },
      { env: [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name: secret, key: 'key' } } }] },
    )
    const name = await start(node, { work }, onTestFinished)
    await cluster.history.eventually('the reason names it', ({ nodes }) =>
      (publishedState(nodes.get(node), name).reason?.message ?? '').includes('the token is ***'),
    )
    await cluster.history.eventually('an Event reports it', ({ events }) =>
      [...events.values()].some(
        ({ message }) => message?.includes(name) === true && message.includes('the token is ***'),
      ),
    )
    await cluster.history.never('the secret in an Event or on a Node', (view) => {
      const shows = (object: object): boolean => JSON.stringify(object).includes(value)
      return [...view.events.values(), ...view.nodes.values()].some(shows) && 'there it is'
    })
    expect(
      await cluster.sandbox.kubectl(['-n', 'skyhook', 'logs', '-l', 'app.kubernetes.io/name=skyhookd', '--tail=-1']),
    ).not.toContain(value)
    const filesWithIt = async (...where: string[]): Promise<string> =>
      await host.exec('sh', '-c', `find ${where.join(' ')} -type f -exec grep -sl ${value} {} + || true`)
    expect(await filesWithIt(state, '/etc')).toBe('')
    // there, for root alone, while an attempt runs: the next one may have begun
    expect(await filesWithIt('/run/skyhook', '-perm /077')).toBe('')
    await expect.poll(async () => await filesWithIt('/run/skyhook'), { timeout: 30_000 }).toBe('')
  })
})
