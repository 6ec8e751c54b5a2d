/**
 * The sandbox of the fault campaign: hosts whose power cuts lose what was not synced, agents that obey commands at
 * their failpoints.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { KubeTransport } from '../../src/kube/transport.ts'
import type { Lease } from '../../src/lease/slot.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { pushJournalPackages, repository } from '../kit/files/journal-images.ts'
import { adminTransport, paths, ignoreNotFound } from '../kit/cluster/kube.ts'
import { sandbox, type Sandbox } from '../sandbox/sandbox.ts'
import { agentProcess, waitUntil } from '../kit/cluster/agent-process.ts'
import { installFailpoints } from './install-failpoints.ts'
import { openRecording, type Recording } from './recording.ts'
import { namespace, openRunner, type Runner } from './runner.ts'
import type { Pack } from './workloads.ts'

const diskMib = 384

export type FaultCluster = {
  readonly box: Sandbox
  readonly api: KubeTransport
  readonly runners: readonly Runner[]
  readonly recording: Recording
  close(): Promise<void>
}

/** `keep` leaves the sandbox up; one that is up is used. */
export async function openFaultCluster(name: string, runnerCount: number, keep: boolean): Promise<FaultCluster> {
  const box = sandbox(name)
  if (!existsSync(join(box.folder, 'env')))
    await box.must(['up', String(runnerCount + 1)], { env: { DISK_MIB: String(diskMib), RECORDER: '1' } })
  const { KUBECONFIG = '', REGISTRY = '' } = box.env()
  const api = adminTransport(KUBECONFIG)
  await installFailpoints(box)
  await pushJournalPackages(box)
  if (!(await ignoreNotFound(api, 'GET', `/api/v1/namespaces/${namespace}`)))
    await api.json('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } })
  // pods are refused before the controller has made the account that they run under
  const account = `/api/v1/namespaces/${namespace}/serviceaccounts/default`
  await waitUntil(20_000, async () => (await ignoreNotFound(api, 'GET', account)) !== undefined)
  await cleanUpLeftovers(box)
  const pack: Pack = (version, more = {}) => ({ version, image: `${REGISTRY}/${repository}`, ...more })
  const { items } = await api.json<{ items: KubernetesNode[] }>('GET', paths.nodes)
  const counting = await censusNode(api)
  const nodes = items.map(({ metadata }) => metadata.name).filter((node) => node !== counting)
  const runners = await Promise.all(nodes.map(async (node) => await openRunner({ box, api, node, pack })))
  const recording = await openRecording(box)
  return {
    box,
    api,
    runners,
    recording,
    async close() {
      recording.stop()
      api.close()
      if (!keep) await box.must(['down'])
    },
  }
}

/** What an interrupted campaign left. */
async function cleanUpLeftovers(box: Sandbox): Promise<void> {
  const hosts = readdirSync(join(box.folder, 'hosts'))
  await Promise.all(hosts.map(async (host) => await box.must(['start', host])))
  for (const host of hosts) agentProcess(box, host).resume()
  await box.kubectl(['delete', 'skyhooks', '--all', '--timeout=60s'])
  await box.kubectl(['-n', namespace, 'delete', 'pods', '--all', '--timeout=60s'])
}

/**
 * The node whose agent counts for all. It is left in peace: a workload that waits for an election takes a quarter of a
 * minute longer.
 */
async function censusNode(api: KubeTransport): Promise<string> {
  let holder = ''
  const isElected = async (): Promise<boolean> => {
    const lease = await ignoreNotFound<Lease>(api, 'GET', `${paths.leases}/skyhookd-census`)
    return (holder = lease?.spec?.holderIdentity ?? '') !== ''
  }
  if (!(await waitUntil(60_000, isElected, 100))) throw new Error('no agent is elected for the census')
  return holder
}
