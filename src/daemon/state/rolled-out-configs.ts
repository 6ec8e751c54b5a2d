import { getIfExists } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { ReferencePort } from '../../packages/step/references.ts'
import { ownValue } from '../../schemas/json.ts'
import { isRolledOutConfigOf, type RolledOutConfigs, rolledOutConfigName } from '../../schemas/rolled-out-configs.ts'
import type { Snapshot } from '../../stages/model/snapshot.ts'
import { configuredPackages, operatorWorkOn } from '../../stages/skyhook/adoption.ts'

/**
 * The configuration that the Skyhook operator rolled out, for Skyhooks whose work on this node no agent has taken over
 * yet.
 */
export type RolledOutConfigSource = {
  /** Rejects if one cannot be read; then nothing is known. */
  read(snapshot: Snapshot): Promise<void>
  readonly current: () => ReadonlyMap<string, RolledOutConfigs>
}

type ConfigMap = {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> }
  readonly data?: Readonly<Record<string, string>>
}

/** The ConfigMap of this name in the agent's namespace; undefined if it does not exist. */
export const readConfigMap =
  (transport: KubeTransport, namespace: string) =>
  async (name: string): Promise<ConfigMap | undefined> =>
    await getIfExists(transport, `/api/v1/namespaces/${namespace}/configmaps/${encodeURIComponent(name)}`)

/**
 * Names of the operator's ConfigMaps can collide, and a user's ConfigMap may have such a name: only the operator's own
 * are used.
 */
export function createRolledOutConfigs(
  configMap: (name: string) => Promise<ConfigMap | undefined>,
): RolledOutConfigSource {
  let current: ReadonlyMap<string, RolledOutConfigs> = new Map()
  return {
    async read(snapshot) {
      const found = new Map<string, RolledOutConfigs>()
      for (const { metadata, spec } of snapshot.skyhooks.known ? snapshot.skyhooks.value : []) {
        const { name } = metadata
        const work = operatorWorkOn(snapshot, name)
        const configs: Record<string, Readonly<Record<string, string>>> = {}
        for (const packageName of work ? configuredPackages(spec, work) : []) {
          const version = ownValue(spec.packages, packageName)?.version ?? ''
          const answer = await configMap(rolledOutConfigName(name, packageName, version))
          const isOwn = answer && isRolledOutConfigOf(answer.metadata, { skyhook: name, packageName, version })
          if (isOwn) configs[packageName] = answer.data ?? {}
        }
        if (Object.keys(configs).length > 0) found.set(name, configs)
      }
      current = found
    },
    current: () => current,
  }
}

type Data = { readonly data?: Readonly<Record<string, string>> }

/** Secrets and ConfigMaps of the agent's namespace, read by name when needed, and not cached. */
export function createReferences(transport: KubeTransport, namespace: string): ReferencePort {
  const read = async (plural: string, name: string): Promise<Readonly<Record<string, string>> | undefined> => {
    const path = `/api/v1/namespaces/${namespace}/${plural}/${encodeURIComponent(name)}`
    const found = await getIfExists<Data>(transport, path)
    return found && (found.data ?? {})
  }
  return { secret: (name) => read('secrets', name), configMap: (name) => read('configmaps', name) }
}
