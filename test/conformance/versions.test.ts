/** Rows C12 to C14, N10, N12, N14: upgrades, downgrades, removal, deletion, and state of the original. */
import { expect, test } from 'vitest'
import { nodeStateKey, statusKey, versionKey } from '../../src/schemas/annotations.ts'
import { uniqueName } from '../kit/cluster/cluster.ts'
import { deleteAgent } from '../kit/cluster/agents.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import { manifest, traces } from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'
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
import { modesOf, ofPackage, recordService, summarize, startsOf, withChecks } from '../kit/files/journal-lines.ts'
import { row } from './rows.ts'

const cluster = useConformance()
const node = 'node-2'

test(row('C12'), async () => {
  const name = uniqueName('versions')
  const host = cluster.host(node)
  const [cron, other] = [await recordService(host, name, 'cron'), await recordService(host, name, 'containerd')]
  const packages = {
    dogs: cluster.pack('1.2.6', { interrupt: reboot, configMap: { motd: 'hello' } }),
    nullptr: cluster.pack('2.0.0', { interrupt: service(cron, other), configMap: { motd: 'hello' } }),
    cats: cluster.pack('6.2.0'),
  }
  await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages }), node)
  await expectComplete(
    cluster,
    name,
    { 'cats|6.2.0': 'config', 'dogs|1.2.6': 'post-interrupt', 'nullptr|2.0.0': 'post-interrupt' },
    [node],
    120_000,
  )
  expect(startsOf(await cluster.lines(node, name))).toEqual([])

  const before = (await cluster.lines(node, name)).length
  await cluster.edit(name, {
    packages: {
      cats: null,
      dogs: { version: '1.2.5', configMap: { motd: 'bye' } },
      nullptr: { version: '2.0.1', configMap: { motd: 'bye' } },
    },
  })
  await expectComplete(
    cluster,
    name,
    { 'dogs|1.2.5': 'post-interrupt', 'nullptr|2.0.1': 'post-interrupt' },
    [node],
    120_000,
  )
  const lines = (await cluster.lines(node, name)).slice(before)
  expect(ofPackage(lines, 'dogs').map(({ version, mode }) => `${version} ${mode}`)).toEqual([
    ...withChecks('uninstall').map((mode) => `1.2.6 ${mode}`),
    ...withChecks('apply', 'config', 'post-interrupt').map((mode) => `1.2.5 ${mode}`),
  ])
  expect(modesOf(lines, 'nullptr')).toEqual(withChecks('upgrade', 'config', 'post-interrupt'))
  expect(modesOf(lines, 'cats')).toEqual(withChecks('uninstall'))
  expect(startsOf(lines)).toEqual([]) // one reboot for both
  const { uid, generation } = skyhookOf(cluster.history.now, name)?.metadata ?? {}
  expect(await host.read(`/var/lib/skyhook/${name}/nullptr-2.0.1-${uid}-${generation}/configmaps/motd`)).toBe('bye')

  await cluster.edit(name, { packages: { dogs: null, nullptr: null } })
  await expectComplete(cluster, name, {}, [node])
  expect(nodeOf(cluster.history.now, node, name).stateText).toBe('{}')
  const last = (await cluster.lines(node, name)).slice(before + lines.length)
  for (const each of ['dogs', 'nullptr']) expect(modesOf(last, each)).toEqual(withChecks('uninstall'))
  await cluster.history.never('blocked or erroring', failureOf(node, name))
  await cluster.history.never('a cordon after everything was removed', ({ nodes, skyhooks }) => {
    const isEmpty = Object.keys(skyhooks.get(name)?.spec.packages ?? { some: 1 }).length === 0
    return isEmpty && nodes.get(node)?.spec?.unschedulable === true && `${node} is cordoned`
  })
})

test(row('C13'), async () => {
  const name = uniqueName('delete')
  const packages = {
    dexter: cluster.pack('1.2.3'),
    spencer: cluster.pack('3.2.3', { dependsOn: { dexter: '1.2.3' }, interrupt: { type: 'noop' } }),
  }
  await cluster.apply(manifest(name, { packages }), node)
  await expectComplete(cluster, name, { 'dexter|1.2.3': 'config', 'spencer|3.2.3': 'post-interrupt' }, [node])
  expect(skyhookOf(cluster.history.now, name)?.metadata.finalizers ?? []).toEqual([])
  const before = await cluster.lines(node, name)

  await cluster.remove(name)
  const { now } = cluster.history
  const publishedState = now.nodes.get(node)
  expect(publishedState && traces(publishedState, name)).toEqual([])
  expect(publishedState?.spec?.unschedulable ?? false).toBe(false)
  expect(slotsOf(now, name)).toEqual([])
  await cluster.history.eventually(
    'no Lease names it',
    ({ leases }) => ![...leases.keys()].some((lease) => lease.startsWith(`${name}-`)),
  )
  expect(await cluster.lines(node, name)).toEqual(before) // nothing opted in to its uninstall
})

test(row('C14'), async () => {
  const name = uniqueName('older')
  const host = cluster.host(node)
  const entry = { name: 'foobar', version: '1.2', image: cluster.image, stage: 'config', state: 'complete' }
  await host.exec('mkdir', '-p', `/var/lib/skyhook/${name}/flags`)
  const annotations = {
    [nodeStateKey(name)]: JSON.stringify({ foobar: entry, 'foobar|1.2': entry }),
    [statusKey(name)]: 'complete',
    [versionKey(name)]: 'v0.5.0',
  }
  await patch(cluster.api, `${paths.nodes}/${node}`, { metadata: { annotations } })
  await deleteAgent(cluster, node) // an agent looks for the original's state when it starts
  await cluster.apply(manifest(name, { packages: { foobar: cluster.pack('1.2') } }), node)
  await expectComplete(cluster, name, { 'foobar|1.2': 'config' }, [node])
  expect(await cluster.lines(node, name)).toEqual([])
  const states = await cluster.history.values((view) => nodeOf(view, node, name).stateText)
  expect(states.slice(-2), 'it is migrated once').toEqual([
    annotations[nodeStateKey(name)],
    nodeOf(cluster.history.now, node, name).stateText,
  ])
})

test(row('N10'), async () => {
  const name = uniqueName('downgrade')
  const uninstall = { enabled: false }
  await cluster.apply(manifest(name, { packages: { dogs: cluster.pack('1.2.6', { uninstall }) } }), node)
  await expectComplete(cluster, name, { 'dogs|1.2.6': 'config' }, [node])
  await cluster.edit(name, { packages: { dogs: { version: '1.2.5' } } })
  await expectComplete(cluster, name, { 'dogs|1.2.5': 'config', 'dogs|1.2.6': 'config' }, [node])
  const lines = await cluster.lines(node, name)
  expect(lines.map(({ version, mode }) => `${version} ${mode}`)).toEqual(
    ['1.2.6', '1.2.5'].flatMap((version) => withChecks('apply', 'config').map((mode) => `${version} ${mode}`)),
  )
})

test(row('N12'), async () => {
  const name = uniqueName('upgrade')
  await cluster.apply(manifest(name, { packages: { dogs: cluster.pack('1.2.5') } }), node)
  await expectComplete(cluster, name, { 'dogs|1.2.5': 'config' }, [node])
  await cluster.edit(name, { packages: { dogs: { version: '1.2.6' } } })
  await expectComplete(cluster, name, { 'dogs|1.2.6': 'config' }, [node])
  const added = (await cluster.lines(node, name)).slice(4)
  expect(added.map(({ mode, args }) => `${mode} ${args}`.trim())).toEqual([
    'upgrade 1.2.5 1.2.6',
    'upgrade-check 1.2.5 1.2.6',
    'config',
    'config-check',
  ])
  expect(entryOf(cluster.history.now, node, name, 'dogs|1.2.5')).toBe('absent')
})

test(row('N14'), async () => {
  const name = uniqueName('ready')
  const nodes = ['node-1', 'node-2'] as const
  const packages = { dexter: cluster.pack('1.2.3', { env: [{ name: 'APPLY_SLEEP', value: '0.5' }] }) }
  await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages }), ...nodes)
  await cluster.sandbox.kubectl(['wait', '--for=condition=Ready', `skyhook/${name}`, '--timeout=60s'])
  await expectComplete(cluster, name, { 'dexter|1.2.3': 'config' }, nodes)
  expect(summarize(await cluster.lines(node, name))).toEqual(
    withChecks('apply', 'config').map((mode) => `dexter ${mode}`),
  )
  await cluster.history.never('Ready before all nodes are complete', (moment) => {
    const ready = statusOf(moment, name).conditions?.find(({ type }) => type === 'Ready')
    const incomplete = nodes.filter((one) => nodeOf(moment, one, name).status !== 'complete')
    return (
      skyhookOf(moment, name) !== undefined &&
      ready?.status === 'True' &&
      incomplete.length > 0 &&
      `${incomplete.join()} not complete`
    )
  })
})
