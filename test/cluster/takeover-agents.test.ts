/** What `kubectl skyhook doctor --takeover` says where the chart of the agents is, or was, installed. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkTakeover } from '../../src/cli/doctor/read/read-takeover.ts'
import { journalKey, nodeStateKey, statusKey } from '../../src/schemas/annotations.ts'
import { skyhooksPath } from '../../src/schemas/api.ts'
import { sha256Hex } from '../../src/schemas/canonical-json.ts'
import { appliedHash } from '../../src/stages/model/package-inputs.ts'
import { startApiServer } from './api-server.ts'
import { chart, type ChartCluster, installChart, type Json, namespace, startChartCluster } from './chart-cluster.ts'

const { signal } = new AbortController()
const merge = 'application/merge-patch+json'

let cluster: ChartCluster
beforeAll(async () => {
  cluster = await startChartCluster(await startApiServer())
  await installChart(cluster)
})
afterAll(async () => await cluster?.stop())

/** Ids of the findings, and what it says of Skyhooks. */
async function look(): Promise<{ readonly ids: readonly string[]; readonly skyhooks: readonly string[] }> {
  const checks = await checkTakeover(cluster.server.admin, signal)
  return {
    ids: checks.flatMap(({ findings }) => findings.map(({ id }) => id)),
    skyhooks: checks.flatMap(({ check, about }) => (check === 'skyhook' ? [about] : [])),
  }
}
const packagesOf = (configMap: Json): Json => ({
  packages: { one: { version: '1.0.0', image: 'registry.example.com/one', configMap } },
})

test('the release of the agents is not taken for that of the operator', async () => {
  expect((await look()).ids).toEqual([])
})

test('agents that are installed are there, and those that were removed are not', async () => {
  const spec = packagesOf({ file: 'old' })
  const meta = { apiVersion: 'skyhook.nvidia.com/v1alpha1', kind: 'Skyhook', metadata: { name: 'tuning' } }
  expect(await cluster.admin('POST', skyhooksPath, { ...meta, spec })).toMatchObject({ status: 201 })
  const entry = { name: 'one', version: '1.0.0', image: 'registry.example.com/one', stage: 'config', state: 'complete' }
  const state = JSON.stringify({ 'one|1.0.0': entry })
  const companion = { v: 1, rev: 2, sha256: sha256Hex(state), nodeUID: 'x', applied: appliedHash(spec as never) }
  const annotations = {
    [nodeStateKey('tuning')]: state,
    [statusKey('tuning')]: 'complete',
    [journalKey('tuning')]: JSON.stringify(companion),
  }
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1', annotations } }
  expect(await cluster.admin('POST', '/api/v1/nodes', node)).toMatchObject({ status: 201 })
  expect((await look()).skyhooks).toEqual(['tuning has an agent already on node-1'])

  await cluster.helm('uninstall', 'skyhookd', '--no-hooks')
  expect(await look()).toEqual({ ids: [], skyhooks: ['tuning stays complete on node-1'] })

  // the operator rolls a configuration out meanwhile, and the state on the Node is as before
  const edit = { spec: packagesOf({ file: 'new' }) }
  expect(await cluster.admin('PATCH', `${skyhooksPath}/tuning`, edit, merge)).toMatchObject({ status: 200 })
  expect(await look()).toEqual({
    ids: ['journal-outdated'],
    skyhooks: ['tuning has changed since agents were there on node-1'],
  })
})

test('another release that takes the definitions over is named, and not the one that made them', async () => {
  await cluster.helm('install', 'elsewhere', chart, '--take-ownership')
  await cluster.admin('DELETE', `/apis/apps/v1/namespaces/${namespace}/daemonsets/elsewhere-skyhookd`)
  const checks = await checkTakeover(cluster.server.admin, signal)
  const found = checks.flatMap(({ findings }) => findings.filter(({ id }) => id === 'operator-release'))
  expect(found.map(({ command }) => command)).toEqual([
    `kubectl -n ${namespace} delete secret -l owner=helm,name=elsewhere`,
  ])
})
