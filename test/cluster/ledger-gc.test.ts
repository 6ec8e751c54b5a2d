/** A real controller manager deletes a ledger with its Skyhook. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { ledgerName } from '../../src/lease/names.ts'
import { leasesPath, startCensusCluster, type CensusCluster } from './census-cluster.ts'
import { borrowChartCluster } from './shared-cluster.ts'

let cluster: CensusCluster
beforeAll(async () => {
  cluster = await startCensusCluster(await borrowChartCluster({ controllerManager: true }))
})
afterAll(async () => await cluster?.stop())

test('a ledger is deleted with its Skyhook, and a new Skyhook of that name gets its own', async () => {
  await cluster.createNode('n1')
  await cluster.census('n1')
  const exists = async (path: string): Promise<boolean> => {
    const found: unknown = await cluster.admin.json('GET', path).catch(() => undefined)
    return found !== undefined
  }
  const spec = { packages: { tuning: { version: '1.0.0', image: 'registry.example.com/tuning' } } }
  const first = await cluster.apply('twice', spec)
  const ledger = `${leasesPath}/${ledgerName(first.metadata)}`
  await vi.waitFor(async () => expect(await exists(ledger)).toBe(true), { timeout: 10_000 })
  await cluster.admin.json('DELETE', '/apis/skyhook.nvidia.com/v1alpha1/skyhooks/twice')
  const second = await cluster.apply('twice', spec)
  await vi.waitFor(async () => expect(await exists(ledger)).toBe(false), { timeout: 60_000, interval: 100 })
  await vi.waitFor(async () => expect(await exists(`${leasesPath}/${ledgerName(second.metadata)}`)).toBe(true), {
    timeout: 10_000,
  })
})
