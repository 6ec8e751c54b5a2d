/** Rows C09 to C11: which changes interrupt, what they wait for, and how interrupts are merged. */
import { expect, test } from 'vitest'
import type { PackageSpec } from '../../src/schemas/skyhook.ts'
import { cordonKey } from '../../src/schemas/annotations.ts'
import { uniqueName } from '../kit/cluster/cluster.ts'
import type { View } from '../kit/cluster/moments.ts'
import { hasEvent } from '../kit/cluster/node-availability.ts'
import { releaseFileOf, manifest } from '../kit/cluster/skyhooks.ts'
import {
  entryOf,
  expectComplete,
  nodeOf,
  reboot,
  service,
  skyhookOf,
  statusOf,
  failureOf,
  useConformance,
} from './conformance.ts'
import { modesOf, recordService, summarize, startsOf, withChecks } from '../kit/files/journal-lines.ts'
import { deletePod, isRunning, isThere, isUntouched, startPod } from './pods.ts'
import { row } from './rows.ts'

const cluster = useConformance()
const node = 'node-1'
const env = (variables: Readonly<Record<string, string>>) =>
  Object.entries(variables).map(([name, value]) => ({ name, value }))
const isCordoned = (view: View, name: string): boolean => {
  const { spec, metadata } = view.nodes.get(node) ?? {}
  return spec?.unschedulable === true && metadata?.annotations?.[cordonKey(name)] === 'true'
}

/** Flags of finished interrupts, as `<package>: <file>, …`. */
async function interruptFlags(name: string): Promise<string[]> {
  const host = cluster.host(node)
  const folder = `/var/lib/skyhook/${name}/interrupts/flags`
  const found = (await host.list(folder)).map(
    async (id) => `${id.split('_')[1]}: ${(await host.list(`${folder}/${id}`)).join(', ')}`,
  )
  return (await Promise.all(found)).sort()
}

test(row('C09'), async () => {
  const name = uniqueName('config')
  const host = cluster.host(node)
  const [cron, rsyslog] = [await recordService(host, name, 'cron'), await recordService(host, name, 'rsyslog')]
  const first = { 'game.properties': 'lives=3\n', 'ui.properties': 'color=red\n' }
  const wait = env({ APPLY_WAIT: releaseFileOf(name) })
  await cluster.apply(
    manifest(name, {
      interruptionBudget: { count: 1 },
      packages: {
        spencer: cluster.pack('3.2.3', { interrupt: service(cron), env: wait }),
        dexter: cluster.pack('1.2.3', {
          interrupt: reboot,
          configMap: first,
          configInterrupts: { 'game.properties': service(rsyslog) },
          env: wait,
        }),
        baxter: cluster.pack('3.2.1', {
          configMap: first,
          configInterrupts: { 'game.properties': service(rsyslog, cron) },
        }),
      },
    }),
    node,
  )
  // the node is out of service before anything with an interrupt starts, and independent packages run concurrently
  await cluster.history.eventually('both are in apply', (view) =>
    ['spencer|3.2.3', 'dexter|1.2.3'].every((key) => entryOf(view, node, name, key) === 'apply/in_progress'),
  )
  expect(isCordoned(cluster.history.now, name)).toBe(true)
  expect(nodeOf(cluster.history.now, node, name)).toMatchObject({ status: 'in_progress', notReady: 'True Incomplete' })
  await cluster.history.never('work with an interrupt before the cordon', (moment) => {
    const begun = ['spencer|3.2.3', 'dexter|1.2.3'].filter((key) => entryOf(moment, node, name, key) !== 'absent')
    return (
      begun.length > 0 && nodeOf(moment, node, name).status !== 'complete' && !isCordoned(moment, name) && begun.join()
    )
  })

  // a change while the other packages still run
  await cluster.history.eventually(
    'baxter is done',
    (view) => entryOf(view, node, name, 'baxter|3.2.1') === 'config/complete',
  )
  const boot = await host.bootId()
  const second = { ...first, 'game.properties': 'lives=2\n' }
  await cluster.edit(name, { packages: { baxter: { configMap: second } } })
  await host.awaitLine('/var/log/skyhook-journal', `${name} baxter 3.2.1 config-check`)
  await host.write(releaseFileOf(name), '')
  const interrupted = {
    'baxter|3.2.1': 'post-interrupt',
    'dexter|1.2.3': 'post-interrupt',
    'spencer|3.2.3': 'post-interrupt',
  }
  await expectComplete(cluster, name, interrupted, [node], 120_000)
  expect(await host.bootId()).not.toBe(boot)
  const lines = await cluster.lines(node, name)
  expect(modesOf(lines, 'baxter')).toEqual(withChecks('apply', 'config', 'config', 'post-interrupt'))
  expect(modesOf(lines, 'dexter')).toEqual(withChecks('apply', 'config', 'post-interrupt'))
  expect(startsOf(lines)).toEqual([]) // the one reboot covers the services

  const added = async (
    change: Readonly<Record<string, object>>,
    stages: Readonly<Record<string, string>>,
  ): Promise<string[]> => {
    const before = (await cluster.lines(node, name)).length
    await cluster.edit(name, { packages: change })
    await expectComplete(cluster, name, stages)
    return summarize((await cluster.lines(node, name)).slice(before))
  }
  const bootThen = await host.bootId()
  const third = { ...second, 'game.properties': 'lives=1\n' }
  const gameChanged = await added({ dexter: { configMap: third }, baxter: { configMap: third } }, interrupted)
  expect(gameChanged.toSorted()).toEqual(
    [
      'cron started',
      'rsyslog started',
      ...['baxter', 'dexter'].flatMap((of) => withChecks('config', 'post-interrupt').map((mode) => `${of} ${mode}`)),
    ].sort(),
  )

  const fourth = { ...third, 'ui.properties': 'color=blue\n' }
  const uiChanged = await added(
    { dexter: { configMap: fourth }, baxter: { configMap: fourth } },
    { ...interrupted, 'baxter|3.2.1': 'config', 'dexter|1.2.3': 'config' },
  )
  expect(uiChanged.toSorted()).toEqual(
    ['baxter', 'dexter'].flatMap((of) => withChecks('config').map((mode) => `${of} ${mode}`)),
  )

  const fifth = { ...fourth, 'game.properties': 'lives=0\n' }
  const globbed: Partial<PackageSpec> = { configMap: fifth, configInterrupts: { '*.properties': service(rsyslog) } }
  const globChanged = await added({ dexter: globbed }, { ...interrupted, 'baxter|3.2.1': 'config' })
  expect(globChanged).toEqual([
    'dexter config',
    'dexter config-check',
    'rsyslog started',
    'dexter post-interrupt',
    'dexter post-interrupt-check',
  ])
  expect(await host.bootId()).toBe(bootThen)
  await cluster.history.never('blocked or erroring', failureOf(node, name))
})

test(row('C10'), async () => {
  const name = uniqueName('interrupt')
  const host = cluster.host(node)
  const rsyslog = await recordService(host, name, 'rsyslog')
  const [important, ordinary] = [`${name}-important`, `${name}-drain-on`]
  await startPod(cluster.api, important, node, { dontmess: name })
  await startPod(cluster.api, ordinary, node)
  await cluster.history.eventually('both pods run', (view) => isRunning(view, important) && isRunning(view, ordinary))
  const boot = await host.bootId()
  const overridden = { agentImageOverride: 'registry.example.com/agent:3.2.3' } as Partial<PackageSpec>
  await cluster.apply(
    manifest(name, {
      interruptionBudget: { count: 1 },
      podNonInterruptLabels: { matchLabels: { dontmess: name } },
      packages: {
        jason: cluster.pack('1.3.2', overridden),
        dexter: cluster.pack('1.2.3', { interrupt: reboot, configMap: { motd: 'hello' } }),
        john: cluster.pack('1.2.3', { interrupt: service(rsyslog) }),
        spencer: cluster.pack('3.2.3', { dependsOn: { dexter: '1.2.3' } }),
        baxter: cluster.pack('3.3', { interrupt: service(rsyslog), dependsOn: { spencer: '3.2.3' } }),
        foobar: cluster.pack('1.2', { dependsOn: { dexter: '1.2.3', baxter: '3.3' } }),
      },
    }),
    node,
  )
  await cluster.history.eventually(
    'cordoned, waiting for the protected pod, jason done',
    (view) =>
      isCordoned(view, name) &&
      nodeOf(view, node, name).reason?.reason === 'ProtectedPods' &&
      entryOf(view, node, name, 'jason|1.3.2') === 'config/complete',
  )
  expect(nodeOf(cluster.history.now, node, name)).toMatchObject({
    status: 'in_progress',
    reason: { message: expect.stringContaining(important) as string },
  })
  expect(Object.keys(nodeOf(cluster.history.now, node, name).state)).toEqual(['jason|1.3.2'])
  expect(isUntouched(cluster.history.now, ordinary)).toBe(true)
  expect(isUntouched(cluster.history.now, important)).toBe(true)
  await cluster.history.eventually('an Event names it', (view) =>
    hasEvent(view, node, 'ProtectedPods', name, important),
  )

  await deletePod(cluster.api, important)
  const done = {
    'jason|1.3.2': 'config',
    'dexter|1.2.3': 'post-interrupt',
    'john|1.2.3': 'post-interrupt',
    'spencer|3.2.3': 'config',
    'baxter|3.3': 'post-interrupt',
    'foobar|1.2': 'config',
  }
  await expectComplete(cluster, name, done, [node], 120_000)
  expect(isThere(cluster.history.now, ordinary)).toBe(false)
  await cluster.history.never(
    'somebody moved while the protected pod ran',
    (moment) =>
      isRunning(moment, important) &&
      !isUntouched(moment, ordinary) &&
      isThere(moment, ordinary) &&
      'the ordinary pod is terminating',
  )
  await cluster.history.before(
    ['cordoned', (view) => isCordoned(view, name)],
    ['waiting for the protected pod', (view) => nodeOf(view, node, name).reason?.reason === 'ProtectedPods'],
  )
  await cluster.history.before(
    ['the ordinary pod has ended', (view) => skyhookOf(view, name) !== undefined && !isRunning(view, ordinary)],
    ['dexter begins', (view) => entryOf(view, node, name, 'dexter|1.2.3') !== 'absent'],
  )
  expect(await host.bootId()).not.toBe(boot)
  await cluster.history.never('blocked or erroring', failureOf(node, name))
  const lines = await cluster.lines(node, name)
  expect(startsOf(lines)).toEqual(['rsyslog']) // john's is covered by the reboot, baxter's comes after it
  expect((await interruptFlags(name)).filter((flag) => flag.startsWith('dexter'))).toEqual([
    'dexter: node_restart_0.complete',
  ])
})

test(row('C11'), async () => {
  const name = uniqueName('grouping')
  const host = cluster.host(node)
  const [cron, containerd, foobar] = await Promise.all(
    ['cron', 'containerd', 'foobar'].map((one) => recordService(host, name, one)),
  )
  await cluster.taint(node, { key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' })
  await cluster.apply(
    manifest(name, {
      additionalTolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }],
      packages: {
        zeb: cluster.pack('2.1.4', { interrupt: service(cron ?? '') }),
        dax: cluster.pack('1.2.3', { interrupt: service(foobar ?? '', containerd ?? '', cron ?? '') }),
      },
    }),
    node,
  )
  await expectComplete(cluster, name, { 'dax|1.2.3': 'post-interrupt', 'zeb|2.1.4': 'post-interrupt' })
  const lines = await cluster.lines(node, name)
  expect(startsOf(lines)).toEqual(['containerd', 'cron', 'foobar'])
  const order = summarize(lines)
  const restarts = order.flatMap((line, index) => (line.endsWith('started') ? [index] : []))
  expect(restarts).toEqual([8, 9, 10]) // after apply and config of both, before anything of post-interrupt
  for (const each of ['dax', 'zeb'])
    expect(modesOf(lines, each)).toEqual(withChecks('apply', 'config', 'post-interrupt'))
  await cluster.history.never('at work without a cordon', (moment) => {
    const { status, state } = nodeOf(moment, node, name)
    return status === 'in_progress' && Object.keys(state).length > 0 && !isCordoned(moment, name) && 'in_progress'
  })
  expect(statusOf(cluster.history.now, name).status).toBe('complete')
  expect((await interruptFlags(name)).map((flag) => flag.split(':')[0])).toContain('dax')
})
