/** The resources that the simulated API server has, what their registries allow, and their paths. */

export type Resource = {
  readonly plural: string
  readonly kind: string
  readonly group: string
  readonly apiVersion: string
  readonly isNamespaced: boolean
  /** Where the real server stores them; it shows in some messages. */
  readonly storageFolder: string
  readonly isCustom: boolean
  readonly hasStatus: boolean
  readonly hasGeneration: boolean
  /** A PUT creates what is not there. */
  readonly createsOnUpdate: boolean
  /** A PUT without a resourceVersion overwrites. */
  readonly isOverwritable: boolean
  /** Its watches come from the watch cache, which sends bookmarks; kube-apiserver has none for Events. */
  readonly hasBookmarks: boolean
  /** Fields of field selectors. */
  readonly selectableFields: readonly string[]
}

type Rules = Partial<Omit<Resource, 'plural' | 'kind' | 'group' | 'apiVersion'>>

function resource(plural: string, kind: string, apiVersion: string, rules: Rules = {}): Resource {
  const [group = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['']
  const isNamespaced = rules.isNamespaced ?? true
  return {
    plural,
    kind,
    group,
    apiVersion,
    isNamespaced,
    storageFolder: rules.isCustom === true ? `${group}/${plural}` : plural,
    isCustom: false,
    hasStatus: false,
    hasGeneration: false,
    createsOnUpdate: false,
    isOverwritable: true,
    hasBookmarks: true,
    ...rules,
    selectableFields: [
      'metadata.name',
      ...(isNamespaced ? ['metadata.namespace'] : []),
      ...(rules.selectableFields ?? []),
    ],
  }
}

const custom = {
  isNamespaced: false,
  isCustom: true,
  hasStatus: true,
  hasGeneration: true,
  isOverwritable: false,
} as const

const all = [
  resource('namespaces', 'Namespace', 'v1', { isNamespaced: false, hasStatus: true }),
  resource('nodes', 'Node', 'v1', { isNamespaced: false, hasStatus: true, storageFolder: 'minions' }),
  resource('pods', 'Pod', 'v1', {
    hasStatus: true,
    hasGeneration: true,
    selectableFields: ['spec.nodeName', 'status.phase'],
  }),
  resource('events', 'Event', 'v1', {
    createsOnUpdate: true,
    hasBookmarks: false,
    selectableFields: ['involvedObject.kind', 'involvedObject.name', 'reason', 'source', 'type'],
  }),
  resource('configmaps', 'ConfigMap', 'v1'),
  resource('secrets', 'Secret', 'v1', { selectableFields: ['type'] }),
  resource('leases', 'Lease', 'coordination.k8s.io/v1', { createsOnUpdate: true, isOverwritable: false }),
  resource('poddisruptionbudgets', 'PodDisruptionBudget', 'policy/v1', {
    hasStatus: true,
    hasGeneration: true,
    isOverwritable: false,
  }),
  resource('skyhooks', 'Skyhook', 'skyhook.nvidia.com/v1alpha1', custom),
  resource('deploymentpolicies', 'DeploymentPolicy', 'skyhook.nvidia.com/v1alpha1', custom),
] as const

export const resources: ReadonlyMap<string, Resource> = new Map(all.map((one) => [one.plural, one]))

export function resourceNamed(plural: string): Resource {
  const found = resources.get(plural)
  if (found === undefined) throw new Error(`the simulated API server has no ${plural}`)
  return found
}

export type Location = {
  readonly resource: Resource
  /** Empty for cluster-scoped resources, and for a collection over all namespaces. */
  readonly namespace: string
  readonly name: string | undefined
  readonly subresource: string | undefined
}

/** What a path means; undefined for one that the server does not serve. */
export function locate(path: string): Location | undefined {
  const parts = path.split('/')
  const start = parts[1] === 'api' ? 3 : 4
  const apiVersion = parts.slice(2, start).join('/')
  const isInNamespace = parts[start] === 'namespaces' && parts.length > start + 2
  const at = isInNamespace ? start + 2 : start
  const found = resources.get(parts[at] ?? '')
  if (found?.apiVersion !== apiVersion || (isInNamespace && !found.isNamespaced)) return undefined
  const [name, subresource] = parts.slice(at + 1)
  return {
    resource: found,
    namespace: isInNamespace ? decodeURIComponent(parts[start + 1] ?? '') : '',
    name: name === undefined ? undefined : decodeURIComponent(name),
    subresource,
  }
}

export const keyOf = (namespace: string, name: string): string => (namespace === '' ? name : `${namespace}/${name}`)
