/** The sandbox of the torture: hosts whose power cuts lose what was not synced, agents that take orders at their crash points. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Transport } from '../../src/kube/transport.ts'
import type { Lease } from '../../src/lease/slot.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { pushJournalPackages, repository } from '../conformance/journal-images.ts'
import { adminTransport, paths, unlessGone } from '../e2e/kube.ts'
import { sandbox, type Sandbox } from '../sandbox/sandbox.ts'
import { agentProcess, ordersFile, within } from './agent-process.ts'
import { namespace, openLane, type Lane } from './runner.ts'
import type { Pack } from './workloads.ts'

const diskMib = 384
const installWithinMs = 180_000

export type Bench = { readonly box: Sandbox; readonly api: Transport; readonly lanes: readonly Lane[]; close(): Promise<void> }

/** `keep` leaves the sandbox up; one that is up is used. */
export async function openBench(name: string, laneCount: number, keep: boolean): Promise<Bench> {
  const box = sandbox(name)
  if (!existsSync(join(box.folder, 'env'))) await box.must(['up', String(laneCount + 1)], { env: { DISK_MIB: String(diskMib) } })
  const { KUBECONFIG = '', REGISTRY = '' } = box.env()
  const api = adminTransport(KUBECONFIG)
  await box.kubectl(['-n', 'skyhook', 'set', 'env', '--field-manager=helm', 'daemonset/skyhookd', `SKYHOOKD_FAILPOINT=@${ordersFile}`])
  await box.kubectl(['-n', 'skyhook', 'rollout', 'status', 'daemonset/skyhookd', `--timeout=${installWithinMs / 1000}s`])
  await pushJournalPackages(box)
  if (!(await unlessGone(api, 'GET', `/api/v1/namespaces/${namespace}`)))
    await api.json('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } })
  // pods are refused before the controller has made the account that they run under
  const account = `/api/v1/namespaces/${namespace}/serviceaccounts/default`
  await within(20_000, async () => (await unlessGone(api, 'GET', account)) !== undefined)
  await sweep(box)
  const pack: Pack = (version, more = {}) => ({ version, image: `${REGISTRY}/${repository}`, ...more })
  const { items } = await api.json<{ items: KubernetesNode[] }>('GET', paths.nodes)
  const counting = await censusNode(api)
  const nodes = items.map(({ metadata }) => metadata.name).filter((node) => node !== counting)
  const lanes = await Promise.all(nodes.map(async (node) => await openLane({ box, api, node, pack })))
  return {
    box,
    api,
    lanes,
    async close() {
      api.close()
      if (!keep) await box.must(['down'])
    },
  }
}

/** What an interrupted torture left. */
async function sweep(box: Sandbox): Promise<void> {
  const hosts = readdirSync(join(box.folder, 'hosts'))
  await Promise.all(hosts.map(async (host) => await box.must(['start', host])))
  for (const host of hosts) agentProcess(box, host).resume()
  await box.kubectl(['delete', 'skyhooks', '--all', '--timeout=60s'])
  await box.kubectl(['-n', namespace, 'delete', 'pods', '--all', '--timeout=60s'])
}

/** The node whose agent counts for all. It is left in peace: a life that waits for an election takes a quarter of a minute longer. */
async function censusNode(api: Transport): Promise<string> {
  let holder = ''
  const isElected = async (): Promise<boolean> => {
    const lease = await unlessGone<Lease>(api, 'GET', `${paths.leases}/skyhookd-census`)
    return (holder = lease?.spec?.holderIdentity ?? '') !== ''
  }
  if (!(await within(60_000, isElected, 100))) throw new Error('no agent is elected for the census')
  return holder
}
