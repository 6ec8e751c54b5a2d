/** The agents' settings that decisions depend on, from the ConfigMap of the chart. */
import type { KubeObject } from '../../kube/objects.ts'
import { isObject, parseJson } from '../../schemas/json.ts'
import type { StageSettings } from '../../stages/model/snapshot.ts'

export type ConfigMapObject = KubeObject & { readonly data?: Readonly<Record<string, string>> }

/** What the agents take where the chart's values say nothing. */
export const defaultSettings: StageSettings = {
  runtimeRequiredTaint: { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' },
  skipNamespaces: ['kube-system'],
  reapplyOnReboot: false,
}

/** Undefined for a ConfigMap that has no settings. */
export function settingsOf({ data }: ConfigMapObject): StageSettings | undefined {
  const file = parseJson(data?.['settings.json'] ?? '')
  if (!isObject(file)) return undefined
  const drain = isObject(file['drain']) ? file['drain'] : {}
  const namespaces: unknown = drain['skipNamespaces']
  return {
    runtimeRequiredTaint: taintOf(file['runtimeRequiredTaint']) ?? defaultSettings.runtimeRequiredTaint,
    skipNamespaces: Array.isArray(namespaces) ? namespaces.map(String) : defaultSettings.skipNamespaces,
    reapplyOnReboot: file['reapplyOnReboot'] === true,
  }
}

/** `key=value:effect` or `key:effect`. */
function taintOf(text: unknown): StageSettings['runtimeRequiredTaint'] | undefined {
  const [, key, value, effect] = /^([^=:]+)(?:=([^:]*))?:(\w+)$/.exec(typeof text === 'string' ? text : '') ?? []
  if (key === undefined || effect === undefined) return undefined
  return { key, ...(value !== undefined && value !== '' && { value }), effect }
}
