import type { ReferencePort } from '../../packages/step/references.ts'
import { type RolledOutConfigs, rolledOutConfigName } from '../../schemas/rolled-out-configs.ts'
import type { Snapshot } from '../../stages/model/snapshot.ts'
import { configuredPackages } from '../../stages/skyhook/adoption.ts'
import { operatorWorkOn } from '../../stages/skyhook/bootstrap.ts'

/** What the Skyhook operator rolled out, of the Skyhooks whose work on this node no agent has taken over yet. */
export type RolledOutConfigSource = {
  /** Rejects when one cannot be read; nothing is known then. */
  read(snapshot: Snapshot): Promise<void>
  readonly current: () => ReadonlyMap<string, RolledOutConfigs>
}

export function createRolledOutConfigs({ configMap }: Pick<ReferencePort, 'configMap'>): RolledOutConfigSource {
  let current: ReadonlyMap<string, RolledOutConfigs> = new Map()
  return {
    async read(snapshot) {
      const found = new Map<string, RolledOutConfigs>()
      for (const { metadata, spec } of snapshot.skyhooks.known ? snapshot.skyhooks.value : []) {
        const { name } = metadata
        const work = operatorWorkOn(snapshot, name)
        const configs: Record<string, Readonly<Record<string, string>>> = {}
        for (const packageName of work ? configuredPackages(spec, work) : []) {
          const version = spec.packages?.[packageName]?.version ?? ''
          const data = await configMap(rolledOutConfigName(name, packageName, version))
          if (data) configs[packageName] = data
        }
        if (Object.keys(configs).length > 0) found.set(name, configs)
      }
      current = found
    },
    current: () => current,
  }
}
