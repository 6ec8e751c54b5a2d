/** Rows C01 to C06: installation, additions, dependencies, failures, configuration changes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { nodeStateKey } from '../../src/schemas/annotations.ts'
import { uniqueName } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import { releaseFileOf, manifest } from '../kit/cluster/skyhooks.ts'
import { entryOf, expectComplete, nodeOf, skyhookOf, statusOf, useConformance } from './conformance.ts'
import { journalFile, modesOf, ofPackage, summarize, startTimeOf, withChecks } from '../kit/files/journal-lines.ts'
import { row } from './rows.ts'

const cluster = useConformance()
const node = 'node-1'
const game = { 'game.properties': 'lives=3\n', 'ui.properties': 'color=red\n' }
const env = (variables: Readonly<Record<string, string>>) =>
  Object.entries(variables).map(([name, value]) => ({ name, value }))

test(row('C01'), async () => {
  const name = uniqueName('simple')
  const host = cluster.host(node)
  const limits = { cpuRequest: '50m', cpuLimit: '500m', memoryRequest: '32Mi', memoryLimit: '32Mi' }
  await cluster.apply(
    manifest(name, {
      interruptionBudget: { count: 1 },
      additionalTolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }],
      packages: {
        dexter: cluster.pack('1.2.3', { image: `${cluster.image}:bogus`, configMap: game }), // no such tag exists
        spencer: cluster.pack('3.2.3', { dependsOn: { dexter: '1.2.3' } }),
        foobar: cluster.pack('1.2', {
          dependsOn: { dexter: '1.2.3' },
          containerSHA: cluster.digest('1.2'),
          resources: limits,
          env: env({ APPLY_WAIT: releaseFileOf(name) }),
        }),
      },
    }),
    node,
  )
  await host.awaitLine(journalFile, `${name} foobar 1.2 apply journal.sh`)
  const unit = await host.exec('systemctl', 'show', 'skyhookd-*.service', '--property=MemoryMax,CPUQuotaPerSecUSec')
  expect(unit).toContain(`MemoryMax=${32 * 1024 * 1024}`)
  expect(unit).toContain('CPUQuotaPerSecUSec=500ms')
  expect(nodeOf(cluster.history.now, node, name).status).toBe('in_progress')
  await host.write(releaseFileOf(name), '')

  await expectComplete(cluster, name, { 'dexter|1.2.3': 'config', 'foobar|1.2': 'config', 'spencer|3.2.3': 'config' })
  const lines = await cluster.lines(node, name)
  for (const each of ['dexter', 'spencer', 'foobar'])
    expect(modesOf(lines, each)).toEqual(withChecks('apply', 'config'))
  expect(summarize(lines).slice(0, 4)).toEqual(withChecks('apply', 'config').map((mode) => `dexter ${mode}`))

  const { uid } = skyhookOf(cluster.history.now, name)?.metadata ?? {}
  const folder = `/var/lib/skyhook/${name}/dexter-1.2.3-${uid}-1`
  expect((await host.list(`${folder}/configmaps`)).filter((key) => !key.startsWith('..'))).toEqual(Object.keys(game))
  expect(await host.read(`${folder}/configmaps/game.properties`)).toBe(game['game.properties'])
  expect(await host.list(`${folder}/node-metadata`)).toEqual(['annotations.json', 'labels.json', 'packages.json'])
  const packages = JSON.parse((await host.read(`${folder}/node-metadata/packages.json`)) ?? '') as unknown
  expect(packages).toMatchObject({
    agentVersion: expect.any(String) as string,
    packages: { dexter: { version: '1.2.3' } },
  })
})

test(row('C02'), async () => {
  const name = uniqueName('update')
  const first = {
    dexter: cluster.pack('1.2.3', { configMap: game }),
    spencer: cluster.pack('3.2.3', { dependsOn: { dexter: '1.2.3' } }),
    foobar: cluster.pack('1.2', { dependsOn: { dexter: '1.2.3' } }),
  }
  await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages: first }), node)
  const complete = { 'dexter|1.2.3': 'config', 'foobar|1.2': 'config', 'spencer|3.2.3': 'config' }
  await expectComplete(cluster, name, complete)
  const before = await cluster.lines(node, name)

  await cluster.edit(name, {
    packages: { baxter: cluster.pack('2.3.1-test', { configMap: game }), 'jackie-chan': cluster.pack('2024.7.7-test') },
  })
  await expectComplete(cluster, name, {
    ...complete,
    'baxter|2.3.1-test': 'config',
    'jackie-chan|2024.7.7-test': 'config',
  })
  const added = (await cluster.lines(node, name)).slice(before.length)
  expect([...new Set(added.map((line) => line.package))].sort()).toEqual(['baxter', 'jackie-chan'])
  for (const each of ['baxter', 'jackie-chan']) expect(modesOf(added, each)).toEqual(withChecks('apply', 'config'))
})

test(row('C03'), async () => {
  const name = uniqueName('depends')
  const packages = {
    'aa-fast': cluster.pack('1.2.3', { env: env({ APPLY_SLEEP: '0.3' }) }),
    'bb-slow': cluster.pack('1.2', { env: env({ APPLY_SLEEP: '1.2' }) }),
    'cc-last': cluster.pack('5.4.3', { dependsOn: { 'aa-fast': '1.2.3', 'bb-slow': '1.2' } }),
  }
  await cluster.apply(manifest(name, { packages }), node)
  await expectComplete(cluster, name, { 'aa-fast|1.2.3': 'config', 'bb-slow|1.2': 'config', 'cc-last|5.4.3': 'config' })

  const lines = await cluster.lines(node, name)
  expect(startTimeOf(lines, 'aa-fast', 'apply')).toBeLessThan(startTimeOf(lines, 'bb-slow', 'apply-check'))
  expect(startTimeOf(lines, 'bb-slow', 'apply')).toBeLessThan(startTimeOf(lines, 'aa-fast', 'apply-check'))
  expect(summarize(lines).slice(-4)).toEqual(withChecks('apply', 'config').map((mode) => `cc-last ${mode}`))
  await cluster.history.never('a dependent before what it needs', (moment) => {
    const states = ['aa-fast|1.2.3', 'bb-slow|1.2'].map((key) => entryOf(moment, node, name, key))
    return (
      entryOf(moment, node, name, 'cc-last|5.4.3') !== 'absent' &&
      states.join() !== 'config/complete,config/complete' &&
      states.join(' and ')
    )
  })
})

test(row('C04'), async () => {
  const name = uniqueName('failure')
  const packages = {
    dexter: cluster.pack('1.2.3'),
    failure: cluster.pack('1.2.3', { dependsOn: { dexter: '1.2.3' }, env: env({ EXIT: '2' }) }),
  }
  await cluster.apply(manifest(name, { interruptionBudget: { percent: 20 }, packages }), node)
  await cluster.history.eventually('it failed twice and says why', (view) => {
    const { state, reason } = nodeOf(view, node, name)
    return (state['failure|1.2.3']?.restarts ?? 0) >= 2 && reason !== undefined
  })
  expect(nodeOf(cluster.history.now, node, name)).toMatchObject({
    status: 'erroring',
    label: 'erroring',
    notReady: 'True Incomplete',
    erroring: 'True Package(s) Erroring or Unknown',
    state: {
      'dexter|1.2.3': { stage: 'config', state: 'complete' },
      'failure|1.2.3': { stage: 'apply', state: 'erroring' },
    },
    reason: { reason: 'StepFailed', message: expect.stringContaining('exited 2') as string },
  })
  await cluster.history.eventually('the Skyhook reports it', (view) => statusOf(view, name).status === 'erroring')
  expect(statusOf(cluster.history.now, name)).toMatchObject({
    completeNodes: '0/1',
    packageList: 'dexter:1.2.3,failure:1.2.3',
    nodesInProgress: 1,
  })
  const lines = await cluster.lines(node, name)
  expect(modesOf(lines, 'dexter')).toEqual(withChecks('apply', 'config'))
  expect(new Set(modesOf(lines, 'failure'))).toEqual(new Set(['apply']))
  expect(modesOf(lines, 'failure').length).toBeGreaterThanOrEqual(2)
})

test(row('C06'), async () => {
  const name = uniqueName('cleanup')
  const nodes = ['node-1', 'node-2'] as const
  const packages = {
    aa: cluster.pack('1.2.3'),
    bb: cluster.pack('1.2', { dependsOn: { aa: '1.2.3' }, configMap: { motd: 'hello' } }),
  }
  await cluster.apply(manifest(name, { packages }), ...nodes)
  const complete = { 'aa|1.2.3': 'config', 'bb|1.2': 'config' }
  await expectComplete(cluster, name, complete, nodes)

  const marks = await Promise.all(nodes.map((one) => cluster.lines(one, name)))
  await cluster.edit(name, { packages: { bb: { configMap: { motd: 'good evening' }, gracefulShutdown: '46s' } } })
  await expectComplete(cluster, name, complete, nodes)
  for (const [index, one] of nodes.entries()) {
    const added = (await cluster.lines(one, name)).slice(marks[index]?.length)
    expect([one, ...summarize(added)]).toEqual([one, 'bb config', 'bb config-check'])
  }

  await cluster.edit(name, { packages: { bb: { configMap: { motd: 'good night' }, env: env({ EXIT: '2' }) } } })
  await cluster.history.eventually('bb fails on both', (view) =>
    nodes.every((one) => entryOf(view, one, name, 'bb|1.2') === 'config/erroring'),
  )

  const before = await cluster.lines('node-1', name)
  await patch(cluster.api, `${paths.nodes}/node-1`, { metadata: { annotations: { [nodeStateKey(name)]: null } } })
  await cluster.history.eventually(
    'bb fails in apply',
    (view) => entryOf(view, 'node-1', name, 'bb|1.2') === 'apply/erroring',
  )
  expect(entryOf(cluster.history.now, 'node-1', name, 'aa|1.2.3')).toBe('config/complete')
  expect(entryOf(cluster.history.now, 'node-2', name, 'bb|1.2')).toBe('config/erroring')
  expect(summarize((await cluster.lines('node-1', name)).slice(before.length)).slice(0, 5)).toEqual([
    ...withChecks('apply', 'config').map((mode) => `aa ${mode}`),
    'bb apply',
  ])
  await cluster.history.eventually('the Skyhook reports it', (view) => {
    const { status, nodeStatus } = statusOf(view, name)
    return status === 'erroring' && nodes.every((one) => nodeStatus?.[one] === 'erroring')
  })

  // a stopped step gets SIGTERM, and SIGKILL only after its grace period
  const slow = uniqueName('graceful')
  const stubborn = cluster.pack('1.2.3', {
    gracefulShutdown: '2s',
    env: env({ APPLY_SLEEP: '60', APPLY_STUBBORN: 'true' }),
  })
  await cluster.apply(manifest(slow, { packages: { slow: stubborn } }), 'node-3')
  await cluster.host('node-3').awaitLine(journalFile, `${slow} slow 1.2.3 apply journal.sh`)
  await sleep(300) // its trap is set
  await cluster.edit(slow, { packages: { slow: { env: [] } } })
  await expectComplete(cluster, slow, { 'slow|1.2.3': 'config' }, ['node-3'])
  const [, stopped, again] = ofPackage(await cluster.lines('node-3', slow), 'slow')
  expect([stopped?.args, again?.mode]).toEqual(['SIGTERM', 'apply'])
  expect((again?.atMs ?? 0) - (stopped?.atMs ?? 0)).toBeGreaterThan(1_900)
  expect((again?.atMs ?? 0) - (stopped?.atMs ?? 0)).toBeLessThan(10_000)
})
