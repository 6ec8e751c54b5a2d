/** Reads which agents are installed, and which Helm release has made the definitions. */
import { getIfExists } from '../../../kube/get.ts'
import type { KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { apiGroup } from '../../../schemas/api.ts'
import { known, type Known } from '../../../stages/model/snapshot.ts'
import { type CollectionReader, readerOf, agentSelector, fleetCollections } from '../../fleet-view/collections.ts'
import { mapped, readable } from '../../fleet-view/readable.ts'
import { type ConfigMapObject, settingsOf } from '../../fleet-view/settings.ts'
import type { AgentsInstallation, DefinitionOwner } from '../takeover/facts.ts'

export async function readAgents(
  transport: KubeTransport,
  signal: AbortSignal,
): Promise<Known<readonly AgentsInstallation[]>> {
  const daemonSets = {
    what: 'DaemonSets',
    path: '/apis/apps/v1/daemonsets',
    query: { labelSelector: agentSelector },
    keep: ({ metadata }: KubeObject) => metadata,
  }
  const found = await readerOf(transport, signal)(daemonSets)
  if (!found.known) return found
  return known(
    await Promise.all(
      found.value.map(async ({ namespace = '', name, annotations }) => {
        const { what, path } = fleetCollections(namespace).settings
        const settings = await readable(what, getIfExists<ConfigMapObject>(transport, `${path}/${name}`, { signal }))
        const ignoresNodeWright = mapped(
          settings,
          (one) => one !== undefined && settingsOf(one)?.ignoreNodeWright === true,
        )
        return { namespace, name, release: releaseOf(annotations), ignoresNodeWright }
      }),
    ),
  )
}

/** Helm annotates all its objects with it; `namespace/name`. */
function releaseOf(annotations: Readonly<Record<string, string>> = {}): string | undefined {
  const name = annotations['meta.helm.sh/release-name']
  return name === undefined ? undefined : `${annotations['meta.helm.sh/release-namespace'] ?? ''}/${name}`
}

export async function readDefinitions(
  transport: KubeTransport,
  signal: AbortSignal,
): Promise<Known<readonly DefinitionOwner[]>> {
  const read = readerOf(transport, signal)
  const found = await read({
    what: 'CustomResourceDefinitions',
    path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    keep({ metadata: { name, annotations } }: KubeObject) {
      const release = releaseOf(annotations)
      return name.endsWith(`.${apiGroup}`) && release !== undefined ? { name, release } : undefined
    },
  })
  if (!found.known) return found
  const gone = new Map<string, boolean>()
  for (const { release } of found.value) if (!gone.has(release)) gone.set(release, await isGone(read, release))
  return known(found.value.map((one) => ({ ...one, isGone: gone.get(one.release) === true })))
}

/** Helm keeps a release in Secrets, or in ConfigMaps if configured. Only their metadata is requested. */
async function isGone(read: CollectionReader, release: string): Promise<boolean> {
  const [namespace = '', name = ''] = release.split('/')
  const query = { labelSelector: `owner=helm,name=${name}` }
  const lists = await Promise.all(
    ['secrets', 'configmaps'].map(async (what) => {
      const path = `/api/v1/namespaces/${namespace}/${what}`
      return await read({ what, path, query, metadataOnly: true, keep: () => true })
    }),
  )
  return lists.every((list) => list.known && list.value.length === 0)
}
