/** Fields of the spec whose effect shows only on a real host or with a real scheduler. */
import { describe, test } from 'vitest'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import { claimWithPods, lockNodes } from '../kit/cluster/node-locks.ts'
import { journaled, manifest, publishedState, releaseFileOf, shellscript } from '../kit/cluster/skyhooks.ts'

const cluster = useCluster()
const runtimeRequiredTaint = 'skyhook.nvidia.com'

describe.concurrent('a field of the spec', () => {
  test('with autoTaintNewNodes, a node never seen before takes no ordinary pod until it is complete, and is not tainted again', async ({
    onTestFinished,
    expect,
  }) => {
    const node = 'node-2'
    const { history } = cluster
    const { name, shop } = await claimWithPods(cluster, onTestFinished, 'taint', node)
    const isTainted = ({ nodes }: View): boolean =>
      nodes.get(node)?.spec?.taints?.some(({ key }) => key === runtimeRequiredTaint) === true
    await forget(node)
    const work = shellscript(cluster.registry, journaled(name, 'apply'))
    const spec = { runtimeRequired: true, autoTaintNewNodes: true, packages: { work } }
    await cluster.apply(manifest(name, spec), node)
    await history.eventually('the node is tainted', isTainted)
    const deployed = shop.deploy('early', 1, { nodeSelector: { 'kubernetes.io/hostname': node } })
    await history.eventually('a pod wants the node', (view) => shop.pods(view, 'early').length === 1)
    await cluster.host(node).write(releaseFileOf(name), '')
    await history.eventually(
      'it is complete and without the taint',
      (view) => isCompleteOn(view, name, [node]) && !isTainted(view),
    )
    await deployed
    const complete = await history.first((view) => isCompleteOn(view, name, [node]))
    const scheduled = await history.first((view) => shop.pods(view, 'early')[0]?.spec?.nodeName === node)
    expect(complete?.resourceVersion).toBeLessThanOrEqual(scheduled?.resourceVersion ?? 0)

    await cluster.edit(name, { packages: { work: { configMap: { 'config.sh': 'true' } } } })
    await history.eventually('it is complete again', ({ nodes }) => {
      const { status, state } = publishedState(nodes.get(node), name)
      return status === 'complete' && Object.keys(state).length > 0
    })
    const tainted = (await history.values(isTainted)).filter(Boolean)
    expect(tainted).toEqual([true])
  })

  test('restartAllServices applies changed kernel settings after config and restarts no other service', async ({
    onTestFinished,
    expect,
  }) => {
    const node = 'node-3'
    await lockNodes(onTestFinished, node)
    const name = uniqueName('sysctl')
    const file = `/etc/sysctl.d/99-${name}.conf`
    const host = cluster.host(node)
    const current = async (): Promise<string> => (await host.exec('sysctl', '-n', 'vm.swappiness')).trim()
    const before = await current()
    onTestFinished(async () => {
      await cluster.remove(name)
      await host.exec('rm', '-f', file)
      await host.exec('sysctl', '-w', `vm.swappiness=${before}`)
    })
    const invocations = async (): Promise<string> =>
      await host.exec('systemctl', 'show', '-p', 'InvocationID', 'foobar', 'cron', 'containerd', 'kubelet')
    const running = await invocations()
    const scripts = {
      config: `echo 'vm.swappiness = 37' >${file}`,
      config_check: `test "$(sysctl -n vm.swappiness)" = ${before}`,
      post_interrupt_check: 'test "$(sysctl -n vm.swappiness)" = 37',
    }
    const work = shellscript(cluster.registry, scripts, { interrupt: { type: 'restartAllServices' } })
    await cluster.apply(manifest(name, { packages: { work } }), node)
    await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]))
    expect(await current()).toBe('37')
    expect(await invocations()).toBe(running)
    const logs = `/var/log/skyhook/${name}/work/1.1.0/interrupts`
    const [log = '', errors = ''] = await host.list(logs)
    expect([log, errors]).toEqual([expect.stringMatching(/^restart_all_services_0-.*\.log$/), `${log}.err`])
    expect(await host.read(`${logs}/${log}`)).toBe('systemctl restart systemd-sysctl.service\n')
  })
})

/** Removes what agents wrote to the Node, as a Node has that has just registered. */
async function forget(node: string): Promise<void> {
  const { annotations = {} } = cluster.history.now.nodes.get(node as 'node-1')?.metadata ?? {}
  const own = Object.keys(annotations).filter((key) => key.startsWith('skyhook.nvidia.com/'))
  const none = Object.fromEntries(own.map((key) => [key, null]))
  await patch(cluster.api, `${paths.nodes}/${node}`, { metadata: { annotations: none } })
}
