/** Values of the chart that change what agents do on a host. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, test, vi } from 'vitest'
import { setChartValues } from '../kit/cluster/chart-values.ts'
import { nodeNames, useCluster } from '../kit/cluster/cluster.ts'
import type { View } from '../kit/cluster/moments.ts'
import { hasEvent, isCompleteOn, isCordoned } from '../kit/cluster/node-availability.ts'
import { claimNodes, claimWithPods } from '../kit/cluster/node-locks.ts'
import {
  journaled,
  journalOf,
  manifest,
  onceEach,
  publishedState,
  shellscript,
  withoutTimes,
} from '../kit/cluster/skyhooks.ts'
import { overBudget, workWithoutSlot } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const bootsWithinMs = 90_000

const defaultBudget = 'defaults.interruptionBudget.percent'
beforeAll(
  async () => await setChartValues(cluster, 'reapplyOnReboot=true', 'drain.allowDelete=true', `${defaultBudget}=40`),
)
afterAll(
  async () =>
    await setChartValues(cluster, 'reapplyOnReboot=false', 'drain.allowDelete=false', `${defaultBudget}=null`),
)

const installation = onceEach('apply', 'apply_check', 'config', 'config_check')

describe.concurrent('with reapplyOnReboot', () => {
  test('with reapplyOnReboot, a boot that no agent asked for applies every package again', async ({
    onTestFinished,
    expect,
  }) => {
    const node = 'node-1'
    const { history } = cluster
    const name = await claimNodes(cluster, onTestFinished, 'reapply', node)
    const work = shellscript(cluster.registry, journaled(name))
    await cluster.apply(manifest(name, { packages: { work } }), node)
    await history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]))
    const before = await cluster.host(node).bootId()
    await cluster.sandbox.must(['reboot', node])
    const isNewBoot = ({ nodes }: View): boolean => nodes.get(node)?.status?.nodeInfo?.bootID !== before
    await history.eventually(
      'it is at work in the new boot',
      ({ nodes }) => publishedState(nodes.get(node), name).status === 'in_progress',
      bootsWithinMs,
    )
    await history.eventually('it is complete', (view) => isNewBoot(view) && isCompleteOn(view, name, [node]))
    expect(withoutTimes(await cluster.host(node).lines(journalOf(name)))).toEqual([...installation, ...installation])
  })

  test('with reapplyOnReboot, the reboot of a package applies nothing again', async ({ onTestFinished, expect }) => {
    const node = 'node-2'
    const name = await claimNodes(cluster, onTestFinished, 'own-reboot', node)
    const before = await cluster.host(node).bootId()
    const work = shellscript(cluster.registry, journaled(name), { interrupt: { type: 'reboot' } })
    await cluster.apply(manifest(name, { packages: { work } }), node)
    await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), bootsWithinMs)
    expect(await cluster.host(node).bootId()).not.toBe(before)
    expect(withoutTimes(await cluster.host(node).lines(journalOf(name)))).toEqual([
      ...installation,
      ...onceEach('post_interrupt'),
    ])
  })
})

describe.concurrent('with drain.allowDelete', () => {
  test('with drain.allowDelete and onTimeout: delete, a pod that its budget keeps is deleted after the deadline, a protected one never', async ({
    onTestFinished,
    expect,
  }) => {
    const node = 'node-3'
    const { history } = cluster
    const { name, shop } = await claimWithPods(cluster, onTestFinished, 'delete', node)
    await shop.pod('training', node, { labels: { keep: name } })
    await shop.pod('cart', node)
    await shop.budget('at-least-one', 'cart', 1)
    const work = shellscript(cluster.registry, {}, { interrupt: { type: 'noop' } })
    const drain = { timeoutSeconds: 3, onTimeout: 'delete' } as const
    const podNonInterruptLabels = { matchLabels: { keep: name } }
    await cluster.apply(manifest(name, { podNonInterruptLabels, drain, packages: { work } }), node)
    const reasonIs = (reason: string) => (view: View) =>
      publishedState(view.nodes.get(node), name).reason?.reason === reason
    const protectedSince = await history.eventually('it waits for the protected pod', reasonIs('ProtectedPods'))
    await vi.waitFor(() => expect(Date.now() - protectedSince.atMs).toBeGreaterThan(4_000), { timeout: 10_000 })
    const untouched = ['training', 'cart'].flatMap((app) => shop.pods(history.now, app))
    expect(untouched.map(({ metadata }) => metadata.deletionTimestamp)).toEqual([undefined, undefined])

    await shop.endPod('training')
    await history.eventually('the node is complete and in service', (view) => {
      return isCompleteOn(view, name, [node]) && !isCordoned(view.nodes.get(node))
    })
    await history.eventually('the pod is gone', (view) => shop.pods(view, 'cart').length === 0)
    await history.eventually('an Event names the pod', (view) => hasEvent(view, node, 'PodDeleted', `${name}/cart`))
    const cordoned = await history.first(({ nodes }) => isCordoned(nodes.get(node)))
    const deleted = await history.first((view) =>
      shop.pods(view, 'cart').some(({ metadata }) => metadata.deletionTimestamp !== undefined),
    )
    expect((deleted?.atMs ?? 0) - (cordoned?.atMs ?? 0)).toBeGreaterThan(2_900)
  })
})

const tool = join(import.meta.dirname, '../../src/cli/main.ts')

/** What `kubectl skyhook` prints. */
async function skyhook(...command: readonly string[]): Promise<string> {
  const args = [tool, '--kubeconfig', cluster.kubeconfig, '-n', 'skyhook', ...command]
  return (await promisify(execFile)(process.execPath, args)).stdout
}

describe('with defaults.interruptionBudget', () => {
  test('a Skyhook that names no budget keeps to the default, and status and tool show it', async ({
    onTestFinished,
    expect,
  }) => {
    const { history } = cluster
    const name = await claimNodes(cluster, onTestFinished, 'default-budget', ...nodeNames)
    const work = shellscript(cluster.registry, { apply: 'sleep 1' })
    await cluster.apply(manifest(name, { interruptionBudget: {}, packages: { work } }), ...nodeNames)
    await history.eventually('every node is complete', (view) => isCompleteOn(view, name, nodeNames), 60_000)
    await history.never('two slots', overBudget(name, 1))
    await history.never('work without a slot', workWithoutSlot(name))
    await history.eventually('the status has the ceiling', ({ skyhooks }) => {
      const { spec, status } = skyhooks.get(name) ?? {}
      const compartments = status?.['compartmentStatuses'] as Record<string, { ceiling: number }> | undefined
      return compartments?.['__default__']?.ceiling === 1 && Object.keys(spec?.interruptionBudget ?? {}).length === 0
    })
    expect(JSON.parse(await skyhook('status', name, '-o', 'json'))).toMatchObject({
      items: [{ budget: { value: { limit: 1 } } }],
    })
  })
})
