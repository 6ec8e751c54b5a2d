import { getIfExists } from '../../kube/get.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { isRolledOutConfigOf, type RolledOutConfigs, rolledOutConfigName } from '../../schemas/rolled-out-configs.ts'
import { ownValue } from '../../schemas/own-value.ts'
import type { Snapshot } from '../../stages/model/snapshot.ts'
import { configuredPackages } from '../../stages/skyhook/adoption.ts'
import { operatorWorkOn } from '../../stages/skyhook/bootstrap.ts'

/** What the Skyhook operator rolled out, of the Skyhooks whose work on this node no agent has taken over yet. */
export type RolledOutConfigSource = {
  /** Rejects when one cannot be read; nothing is known then. */
  read(snapshot: Snapshot): Promise<void>
  readonly current: () => ReadonlyMap<string, RolledOutConfigs>
}

type ConfigMap = {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> }
  readonly data?: Readonly<Record<string, string>>
}

/** The ConfigMap of this name in the agent's namespace; undefined = certainly not there. */
export const readConfigMap =
  (transport: KubeTransport, namespace: string) =>
  async (name: string): Promise<ConfigMap | undefined> =>
    await getIfExists(transport, `/api/v1/namespaces/${namespace}/configmaps/${encodeURIComponent(name)}`)

/** Names of the operator's ConfigMaps can collide, and a person's may have one: only its own are believed. */
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
