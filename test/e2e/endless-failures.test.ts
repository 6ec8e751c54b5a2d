/**
 * Failures that do not end by themselves: each shows its reason on the Node within ten seconds, ends when its cause is
 * corrected, and holds no slot while nothing has begun on the host.
 */
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { EnvVar, Interrupt, PackageSpec } from '../../src/schemas/skyhook.ts'
import { fixturePackages, useCluster, type NodeName } from './cluster.ts'
import { ignoreNotFound } from './kube.ts'
import { failureScene, type Scene } from './failure-scene.ts'
import type { OnTestFinished } from './node-locks.ts'
import { refuseLogin } from './registry-login.ts'
import { publishedState, shellscript, type Scripts } from './skyhooks.ts'

const cluster = useCluster()
const secrets = '/api/v1/namespaces/skyhook/secrets'
const scene = async (node: NodeName, onTestFinished: OnTestFinished): Promise<Scene> =>
  await failureScene(cluster, node, onTestFinished)
const script = (scripts: Scripts, more: Partial<PackageSpec> = {}): PackageSpec =>
  shellscript(cluster.registry, scripts, more)
const image = (repository: string): PackageSpec => ({
  version: '1.0.0',
  image: `${cluster.registry}/${repository}`,
})
const host = (node: NodeName) => cluster.host(node)
/** A unit on the host until the test ends. */
async function start(node: NodeName, unit: string, onTestFinished: OnTestFinished, ...command: string[]) {
  await host(node).exec('systemd-run', '--quiet', `--unit=${unit}`, ...command)
  const stop = async (): Promise<void> => {
    await host(node).exec('sh', '-c', `systemctl stop ${unit} || true`)
  }
  onTestFinished(stop)
  return stop
}

beforeAll(async () => {
  await cluster.sandbox.must(['push', join(fixturePackages, 'absent-interpreter'), 'test/absent-interpreter:1.0.0'])
})

describe.concurrent('work that fails for ever', () => {
  test('a step that exits with another code shows it, keeps its slot, and ends when its script is corrected', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-1', onTestFinished)
    await work.apply(script({ apply: 'echo "no such device" >&2; exit 3' }))
    await work.shows('StepFailed', 'apply', 'exited 3', 'no such device')
    await work.showsAgain('StepFailed', 2)
    await work.holdsSlot()
    await work.edit({ configMap: { 'apply.sh': 'true' } })
    expect(await work.ends()).toEqual(['StepFailed'])
  })

  test('a step whose interpreter is not on the host shows both, and ends when it is installed', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-1', onTestFinished)
    await work.apply(image('test/absent-interpreter'))
    await work.shows('StepFailed', 'apply.sh', '/opt/absent/bin/python3', 'not on this host')
    const install = 'mkdir -p /opt/absent/bin && ln -s /bin/sh /opt/absent/bin/python3'
    await host(work.node).exec('sh', '-c', install)
    onTestFinished(async () => void (await host(work.node).exec('rm', '-r', '/opt/absent')))
    expect(await work.ends()).toEqual(['StepFailed'])
  })

  test('a check that fails shows its output, keeps its slot, and ends when it is corrected', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-1', onTestFinished)
    await work.apply(script({ config_check: 'echo "swap is on"; exit 1' }))
    await work.shows('CheckFailed', 'config-check', 'exited 1', 'swap is on')
    await work.showsAgain('CheckFailed', 2)
    await work.holdsSlot()
    await work.edit({ configMap: { 'config_check.sh': 'true' } })
    expect(await work.ends()).toEqual(['CheckFailed'])
  })

  test('an uninstall that fails shows its output, and ends when its script is corrected', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-1', onTestFinished)
    await work.apply(script({ uninstall: 'echo "still mounted"; exit 32' }, { uninstall: { enabled: true } }))
    await work.ends()
    await work.edit({ uninstall: { enabled: true, apply: true } })
    await work.shows('StepFailed', 'uninstall', 'exited 32', 'still mounted')
    await work.edit({ configMap: { 'uninstall.sh': 'true' } })
    expect(await work.ends()).toEqual(['StepFailed'])
  })

  test('an uninstall of a removed package that fails shows its output, and ends when the package is put back', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-3', onTestFinished)
    const installed = script({ uninstall: 'echo "still mounted"; exit 32' })
    await work.apply(installed)
    await work.ends()
    await cluster.edit(work.name, { packages: { work: null, other: script({}) } })
    await work.shows('StepFailed', 'uninstall', 'exited 32', 'still mounted')
    await work.edit(installed)
    expect(await work.ends()).toEqual(['StepFailed'])
  })

  test('a reboot that an inhibitor blocks shows who blocks it, and happens once when the lock is released', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-2', onTestFinished)
    const before = await host(work.node).bootId()
    const inhibit = ['systemd-inhibit', '--what=shutdown', '--who=backup', '--why=writing', 'sleep', 'infinity']
    const release = await start(work.node, `${work.name}-inhibitor`, onTestFinished, ...inhibit)
    const interrupt: Interrupt = { type: 'reboot' }
    await work.apply(script({}, { interrupt }))
    await work.shows('RebootRefused', 'backup', 'writing')
    await work.showsAgain('RebootRefused', 3) // the limit of reboots that happened
    await work.holdsSlot()
    await release()
    expect(await work.ends()).toEqual(['RebootRefused'])
    await cluster.history.eventually(
      'the reboot is counted',
      ({ nodes }) => nodes.get(work.node)?.status?.nodeInfo?.bootID !== before,
    )
  })
})

describe.concurrent('work that cannot begin', () => {
  test('an image that the registry does not have shows its answer and takes no slot, and ends with another version', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-1', onTestFinished)
    await work.apply(script({}, { version: '9.9.7' }))
    await work.shows('ImagePull', 'shellscript:9.9.7', 'manifest unknown')
    await work.heldNoSlot()
    await work.edit({ version: '1.1.0' })
    expect(await work.ends()).toEqual(['ImagePull'])
  })

  test('an image that the credentials do not open shows the refusal and takes no slot, and ends with the right ones', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-2', onTestFinished)
    const repository = `test/${work.name}`
    await cluster.sandbox.must(['push', join(fixturePackages, 'shellscript'), `${repository}:1.0.0`])
    const correct = await refuseLogin(cluster, `${cluster.registry}/${repository}`)
    onTestFinished(correct)
    await work.apply(image(repository))
    await work.shows('ImagePull', repository, 'UNAUTHORIZED')
    await work.heldNoSlot()
    await correct()
    expect(await work.ends()).toEqual(['ImagePull'])
  })

  test('a registry that accepts connections and stays silent is shown with its address and takes no slot', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-3', onTestFinished)
    const listen = ['socat', '-u', 'TCP-LISTEN:5998,fork', 'OPEN:/dev/null']
    await start(work.node, `${work.name}-registry`, onTestFinished, ...listen)
    await work.apply({ version: '1.0.0', image: '127.0.0.1:5998/silent' })
    await work.shows('Preparing')
    await cluster.history.eventually('the silence is the reason', ({ nodes }) => {
      const { reason } = publishedState(nodes.get(work.node), work.name)
      return reason?.reason === 'ImagePull' && reason.message.includes('127.0.0.1:5998')
    })
    await work.heldNoSlot()
    await work.edit(script({}))
    expect(await work.ends()).toEqual(['ImagePull'])
  })

  test('a folder of packages that is read-only shows its path and takes no slot, and ends when it is writable', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-3', onTestFinished)
    const folder = '/var/lib/skyhook'
    // a bind mount takes the flags of its source along to other mount namespaces, a remount does not
    const source = `/run/${work.name}`
    const mount = [
      `mkdir ${source} && mount --bind ${folder} ${source} && mount -o remount,bind,ro ${source}`,
      `mount --bind ${source} ${folder}`,
    ]
    await host(work.node).exec('sh', '-c', mount.join(' && '))
    let isMounted = true
    const unmount = async (): Promise<void> => {
      if (isMounted) await host(work.node).exec('umount', '--lazy', folder, source)
      isMounted = false
    }
    onTestFinished(unmount)
    await work.apply(script({ apply: 'true' }))
    await work.shows('HostUnusable', folder, 'read-only')
    await work.heldNoSlot()
    await unmount()
    expect(await work.ends()).toEqual(['HostUnusable'])
  })

  test('a folder of its own that is immutable shows its path, and ends when it is not', async ({ onTestFinished }) => {
    const work = await scene('node-2', onTestFinished)
    const folder = `/var/lib/skyhook/${work.name}`
    await host(work.node).exec('mkdir', '-p', folder)
    await host(work.node).exec('chattr', '+i', folder)
    const free = async (): Promise<void> => void (await host(work.node).exec('chattr', '-i', folder))
    onTestFinished(free)
    await work.apply(script({ apply: 'true' }))
    await work.shows('HostUnusable', folder)
    await free()
    expect(await work.ends()).toEqual(['HostUnusable'])
  })

  test('a Secret that does not exist is shown with its name and takes no slot, and ends when it is created', async ({
    onTestFinished,
  }) => {
    const work = await scene('node-3', onTestFinished)
    const env: EnvVar[] = [{ name: 'WORD', valueFrom: { secretKeyRef: { name: work.name, key: 'word' } } }]
    await work.apply(script({ apply: 'test "$WORD" = right' }, { env }))
    await work.shows('ReferenceMissing', `Secret skyhook/${work.name}`)
    await work.heldNoSlot()
    onTestFinished(async () => void (await ignoreNotFound(cluster.api, 'DELETE', `${secrets}/${work.name}`)))
    await cluster.api.json('POST', secrets, { body: { metadata: { name: work.name }, stringData: { word: 'right' } } })
    expect(await work.ends()).toEqual(['ReferenceMissing'])
  })
})
