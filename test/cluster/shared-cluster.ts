/**
 * One API server with the chart installed for many test files of a process, one file after the other: an installation
 * on a new server takes ten seconds, a reset a tenth of a second. The first file starts it, and it ends with the
 * process.
 *
 * Files that install or remove definitions or policies have a server of their own. kube-apiserver finds the kind of a
 * new definition for its policies up to 30 s later, and once no policy asks for a built-in kind, it never again follows
 * its objects (kubernetes/kubernetes#130887).
 */
import { etcdCall, type ApiServer } from './api-server.ts'
import { startInstalledCluster, until, type ChartCluster } from './chart-cluster.ts'

type Shared = {
  readonly cluster: ChartCluster
  /** What etcd had after the installation: values by key, both in base64. */
  readonly first: ReadonlyMap<string, string>
  stopControllerManager: () => Promise<void>
}

let shared: Shared | undefined

/**
 * The cluster as it was after the installation. Its `stop` leaves all objects to the next borrower's reset, and a
 * borrower that fails need not call it.
 */
export async function borrowChartCluster(
  options: { readonly controllerManager?: boolean } = {},
): Promise<ChartCluster> {
  const { cluster } = (shared = (await reset(shared)) ?? (await start()))
  if (options.controllerManager === true) shared.stopControllerManager = await cluster.server.startControllerManager()
  const stop = shared.stopControllerManager
  return { ...cluster, server: { ...cluster.server, stop }, stop }
}

async function start(): Promise<Shared> {
  const cluster = await startInstalledCluster()
  await until(async () => await served(cluster), Boolean)
  return { cluster, first: await stored(cluster.server), stopControllerManager: async () => undefined }
}

/** The definitions are served, and what the server itself writes about them is written. */
async function served({ admin }: ChartCluster): Promise<boolean> {
  const { body } = await admin('GET', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions')
  const { items } = body as { items: { status?: { conditions?: { type: string; status: string }[] } }[] }
  const isEstablished = items.every(({ status }) =>
    status?.conditions?.some((one) => one.type === 'Established' && one.status === 'True'),
  )
  return isEstablished && (await admin('GET', '/apis/skyhook.nvidia.com/v1alpha1/skyhooks')).status === 200
}

/** Undefined without a server that is as it was at first. */
async function reset(used: Shared | undefined): Promise<Shared | undefined> {
  if (used === undefined) return undefined
  const { cluster, first } = used
  try {
    await used.stopControllerManager()
    // more than once: the server itself writes and deletes in consequence
    await until(
      async () => await putBack(cluster.server, first),
      (count) => count === 0,
    )
    if (!(await served(cluster))) throw new Error('the definitions are not served')
    return used
  } catch (error) {
    console.log('the shared API server cannot be reset, starting another one:', error)
    await cluster.stop()
    return undefined
  }
}

/** Deletes what is new in etcd and puts back what changed; returns how much that was. */
async function putBack(server: ApiServer, first: ReadonlyMap<string, string>): Promise<number> {
  const now = await stored(server)
  const changes = [
    ...[...now.keys()].filter((key) => !first.has(key)).map((key) => ({ request_delete_range: { key } })),
    ...[...first]
      .filter(([key, value]) => now.get(key) !== value)
      .map(([key, value]) => ({ request_put: { key, value } })),
  ]
  for (let at = 0; at < changes.length; at += maxTxnOps)
    await etcdCall(server.etcdUrl, '/v3/kv/txn', { success: changes.slice(at, at + maxTxnOps) })
  return changes.length
}
/** etcd's default. */
const maxTxnOps = 128

/** Without what the server writes about itself from time to time. */
async function stored({ etcdUrl }: ApiServer): Promise<ReadonlyMap<string, string>> {
  const all = { key: 'AA==', range_end: 'AA==' }
  const { kvs } = (await etcdCall(etcdUrl, '/v3/kv/range', all)) as { kvs: { key: string; value: string }[] }
  return new Map(kvs.filter(({ key }) => !ownKeys.test(atob(key))).map(({ key, value }) => [key, value]))
}
const ownKeys = /^\/registry\/(?:leases\/kube-system|peerserverleases|masterleases)\/|^compact_rev_key/
