/** Reads which agents are installed, and which Helm release has made the definitions. */
import { getIfExists } from '../../../kube/get.ts'
import { type KubeObject, metadataOnlyListAccept } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { apiGroup } from '../../../schemas/api.ts'
import { known, type Known } from '../../../stages/model/snapshot.ts'
import { agentSelector } from '../../fleet-view/read-fleet.ts'
import { readable } from '../../fleet-view/readable.ts'
import { type ConfigMapObject, settingsOf } from '../../fleet-view/settings.ts'
import type { AgentsInstallation, DefinitionOwner } from '../takeover/facts.ts'
import { type SomeOf, someOf } from './some-of.ts'

export async function readAgents(
  transport: KubeTransport,
  signal: AbortSignal,
): Promise<Known<readonly AgentsInstallation[]>> {
  const query = { labelSelector: agentSelector }
  const some = someOf(transport, signal)
  const found = await some('DaemonSets', '/apis/apps/v1/daemonsets', ({ metadata }: KubeObject) => metadata, { query })
  if (!found.known) return found
  return known(
    await Promise.all(
      found.value.map(async ({ namespace = '', name, annotations }) => {
        const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`
        const settings = await readable(
          `ConfigMaps in namespace ${namespace}`,
          getIfExists<ConfigMapObject>(transport, path, { signal }),
        )
        const ignoresNodeWright = settings.known
          ? known(settings.value !== undefined && settingsOf(settings.value)?.ignoreNodeWright === true)
          : settings
        return { namespace, name, release: releaseOf(annotations), ignoresNodeWright }
      }),
    ),
  )
}

/** Helm writes it on all that it makes; `namespace/name`. */
function releaseOf(annotations: Readonly<Record<string, string>> = {}): string | undefined {
  const name = annotations['meta.helm.sh/release-name']
  return name === undefined ? undefined : `${annotations['meta.helm.sh/release-namespace'] ?? ''}/${name}`
}

export async function readDefinitions(
  transport: KubeTransport,
  signal: AbortSignal,
): Promise<Known<readonly DefinitionOwner[]>> {
  const some = someOf(transport, signal)
  const found = await some(
    'CustomResourceDefinitions',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    ({ metadata: { name, annotations } }: KubeObject) => {
      const release = releaseOf(annotations)
      return name.endsWith(`.${apiGroup}`) && release !== undefined ? { name, release } : undefined
    },
  )
  if (!found.known) return found
  const gone = new Map<string, boolean>()
  for (const { release } of found.value) if (!gone.has(release)) gone.set(release, await isGone(some, release))
  return known(found.value.map((one) => ({ ...one, isGone: gone.get(one.release) === true })))
}

/** Helm keeps a release in Secrets, or in ConfigMaps where it is told to. Only their metadata is asked for. */
async function isGone(some: SomeOf, release: string): Promise<boolean> {
  const [namespace = '', name = ''] = release.split('/')
  const options = { query: { labelSelector: `owner=helm,name=${name}` }, accept: metadataOnlyListAccept }
  const lists = await Promise.all(
    ['secrets', 'configmaps'].map(
      async (kind) => await some(kind, `/api/v1/namespaces/${namespace}/${kind}`, () => true, options),
    ),
  )
  return lists.every((list) => list.known && list.value.length === 0)
}
