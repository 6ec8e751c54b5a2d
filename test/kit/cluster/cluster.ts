import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, inject } from 'vitest'
import type { KubeTransport } from '../../../src/kube/transport.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import { sandbox, type Sandbox } from '../../sandbox/sandbox.ts'
import { agentLogs } from './agent-logs.ts'
import { record, type History } from '../history.ts'
import { hostOf, type Host } from './host.ts'
import { adminTransport, patch, paths, ignoreNotFound } from './kube.ts'
import { selectorLabel, traces, type Manifest } from './skyhooks.ts'

/** Those of the shared cluster; a dedicated one may have more. */
export const nodeNames = ['node-1', 'node-2', 'node-3'] as const
export type NodeName = `node-${number}`

/** The cluster that the end-to-end files of one worker share, with a separate recording for each file. */
export type Cluster = {
  readonly sandbox: Sandbox
  readonly api: KubeTransport
  readonly kubeconfig: string
  /** host:port of the registry, under the name that nodes and this machine use. */
  readonly registry: string
  readonly history: History
  host(node: NodeName): Host
  /**
   * Creates the Skyhook for these nodes, or merges the manifest into the existing one. Removed at the end of the file.
   */
  apply(manifest: Manifest, ...nodes: readonly NodeName[]): Promise<Skyhook>
  /** Merges into `spec`. */
  edit(skyhook: string, spec: object): Promise<Skyhook>
  /** Deletes the Skyhook and waits until no node and no slot shows anything of it. */
  remove(skyhook: string): Promise<void>
}

export const fixturePackages = join(import.meta.dirname, '..', '..', 'fixtures', 'packages')
/** Folder of test/fixtures/packages and the name it is pushed under. */
const fixtureImages = [
  ['shellscript', 'skyhook-packages/shellscript:1.1.0'],
  ['broken-config', 'test/broken-config:1.0.0'],
  ['missing-step', 'test/missing-step:1.0.0'],
  ['wants-settings', 'test/wants-settings:1.0.0'],
  ['shellscript', 'skyhook-packages/shellscript:1.1.1'],
  ['bcp', 'base/bcp:2024.05.13'],
  ['nvssh', 'base/nvssh:2024.05.10'],
] as const
/** Each of two workers has one, and a file may have a dedicated one. */
const sandboxesAtOnce = 4

/** A sandbox beside the shared one, for what the shared one cannot do; removed at the end of the file. */
export type DedicatedSandbox = {
  readonly name: string
  readonly nodes: number
  readonly env: Readonly<Record<string, string>>
}

/** Files that run at the same time share none. */
function sharedSandbox(): string {
  const worker = process.env['VITEST_POOL_ID'] ?? '1'
  return worker === '1' ? inject('sandbox') : `${inject('sandbox')}-${worker}`
}

/**
 * The shared cluster, or a dedicated one, for the whole file: its fields are set once the file's tests run. Prints the
 * agents' logs after a failure, and removes what the file applied.
 */
export function useCluster(dedicated?: DedicatedSandbox): Cluster {
  const cluster = {} as Cluster
  let close = async (): Promise<void> => undefined
  beforeAll(async () => {
    const box = sandbox(dedicated ? `${inject('sandbox')}-${dedicated.name}` : sharedSandbox())
    const up = ['up', String(dedicated?.nodes ?? nodeNames.length)]
    const env = { SANDBOXES: String(sandboxesAtOnce), ...dedicated?.env }
    if (!existsSync(join(box.folder, 'env'))) await box.must(up, { env })
    const opened = await open(box)
    Object.assign(cluster, opened.cluster)
    close = async () => {
      await opened.close()
      if (dedicated && process.env['E2E_SANDBOX'] === undefined) await box.must(['down'])
    }
  })
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') console.error(`${task.name}: agent logs:\n${await agentLogs(cluster.sandbox)}`)
  })
  afterAll(async () => await close())
  return cluster
}

async function open(box: Sandbox): Promise<{ cluster: Cluster; close: () => Promise<void> }> {
  await pushFixtures(box)
  const { KUBECONFIG = '', REGISTRY = '' } = box.env()
  const api = adminTransport(KUBECONFIG)
  const history = await record(api)
  const hosts = new Map<NodeName, Host>()
  const applied = new Set<string>()

  const cluster: Cluster = {
    sandbox: box,
    api,
    kubeconfig: KUBECONFIG,
    registry: REGISTRY,
    history,
    host(node) {
      const host = hosts.get(node) ?? hostOf(box, node)
      hosts.set(node, host)
      return host
    },
    async apply(manifest, ...nodes) {
      const { name } = manifest.metadata
      applied.add(name)
      await Promise.all(
        nodes.map((node) => patch(api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectorLabel]: name } } })),
      )
      const path = `${paths.skyhooks}/${name}`
      return (await ignoreNotFound(api, 'GET', path))
        ? await patch(api, path, manifest)
        : await api.json('POST', paths.skyhooks, { body: manifest })
    },
    edit: async (skyhook, spec) => await patch(api, `${paths.skyhooks}/${skyhook}`, { spec }),
    async remove(skyhook) {
      await ignoreNotFound(api, 'DELETE', `${paths.skyhooks}/${skyhook}`)
      await history.eventually(`nothing on the nodes and no slot shows ${skyhook}`, ({ nodes, leases }) => {
        const shows = (node: KubernetesNode): boolean => traces(node, skyhook).length > 0
        return ![...nodes.values()].some(shows) && ![...leases.keys()].some((lease) => lease.startsWith(`${skyhook}-`))
      })
      applied.delete(skyhook)
      const labelled = [...history.now.nodes.values()].filter(
        ({ metadata }) => metadata.labels?.[selectorLabel] === skyhook,
      )
      for (const { metadata } of labelled)
        await patch(api, `${paths.nodes}/${metadata.name}`, { metadata: { labels: { [selectorLabel]: null } } })
    },
  }
  const close = async (): Promise<void> => {
    try {
      for (const skyhook of applied) await cluster.remove(skyhook)
    } finally {
      history.stop()
      api.close()
    }
  }
  return { cluster, close }
}

async function pushFixtures(box: Sandbox): Promise<void> {
  const done = join(box.folder, 'fixtures-pushed')
  const names = fixtureImages.map(([, name]) => name).join('\n')
  if (existsSync(done) && readFileSync(done, 'utf8') === names) return
  await Promise.all(
    fixtureImages.map(async ([folder, name]) => await box.must(['push', join(fixturePackages, folder), name])),
  )
  writeFileSync(done, names)
}

let count = 0

/** A name that no other test, file or run uses: hosts remember Skyhooks by name. */
export function uniqueName(stem: string): string {
  return `${stem}-${process.pid.toString(36)}${(count++).toString(36)}`
}
