/**
 * Failures that do not end by themselves: each shows its reason on the Node within ten seconds, keeps its slot, and
 * ends when its cause is corrected.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import { failureScene, packagesIn, type Scene, startUnit } from './failure-scene.ts'
import type { OnTestFinished } from '../kit/cluster/node-locks.ts'

const cluster = useCluster()
const { script, image, push } = packagesIn(cluster)
const host = (node: NodeName) => cluster.host(node)
const scene = async (node: NodeName, onTestFinished: OnTestFinished): Promise<Scene> =>
  await failureScene(cluster, node, onTestFinished)

beforeAll(async () => {
  await push('absent-interpreter', 'test/absent-interpreter:1.0.0')
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
    const unlock = await startUnit(cluster, work.node, `${work.name}-inhibitor`, onTestFinished, ...inhibit)
    await work.apply(script({}, { interrupt: { type: 'reboot' } }))
    await work.shows('RebootRefused', 'backup', 'writing')
    await work.showsAgain('RebootRefused', 3) // the limit of reboots that happened
    await work.holdsSlot()
    await unlock()
    expect(await work.ends()).toEqual(['RebootRefused'])
    await cluster.history.eventually(
      'the reboot is counted',
      ({ nodes }) => nodes.get(work.node)?.status?.nodeInfo?.bootID !== before,
    )
  })
})
