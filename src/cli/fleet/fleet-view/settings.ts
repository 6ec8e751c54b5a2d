/** The agents' settings that decisions depend on, from the ConfigMap of the chart. */
import type { KubeObject } from '../../../kube/objects.ts'
import { type Budget, budgetOf, readDefaultBudget, takesDefaultBudget } from '../../../schemas/budget.ts'
import { isObject, type JsonObject } from '../../../schemas/json.ts'
import { ignoreNodeWrightSetting } from '../../../schemas/nodewright.ts'
import { hasSettings, settingsFile, settingsIn } from '../../../schemas/setting-keys.ts'
import type { SkyhookSpec } from '../../../schemas/skyhook.ts'
import { known, type Known, type StageSettings, unknown } from '../../../stages/model/snapshot.ts'

export type ConfigMapObject = KubeObject & { readonly data?: Readonly<Record<string, string>> }

export type FleetSettings = StageSettings & {
  /** Of Skyhooks that name no budget. */
  readonly defaultBudget: Budget
}

/** The agents' defaults where the chart's values are absent. */
export const defaultSettings: FleetSettings = {
  runtimeRequiredTaint: { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' },
  skipNamespaces: ['kube-system'],
  reapplyOnReboot: false,
  ignoreNodeWright: false,
  defaultBudget: {},
}

/** A ConfigMap with only what the agents read, as one text. */
export function settingsFileOf(configMap: ConfigMapObject): ConfigMapObject {
  const { metadata } = configMap
  const settings = readableSettings(configMap)
  return { metadata, ...(settings && { data: { [settingsFile]: JSON.stringify(settings) } }) }
}

function readableSettings({ data = {} }: ConfigMapObject): JsonObject | undefined {
  if (!hasSettings(data)) return undefined
  try {
    return settingsIn(data)
  } catch {
    return undefined
  }
}

/** Undefined for a ConfigMap without settings, or with settings that no agent starts with. */
export function settingsOf(configMap: ConfigMapObject): FleetSettings | undefined {
  const file = readableSettings(configMap)
  if (file === undefined) return undefined
  const drain = isObject(file['drain']) ? file['drain'] : {}
  const namespaces: unknown = drain['skipNamespaces']
  const defaultBudget = defaultBudgetIn(file)
  if (defaultBudget === undefined) return undefined
  return {
    runtimeRequiredTaint: taintOf(file['runtimeRequiredTaint']) ?? defaultSettings.runtimeRequiredTaint,
    skipNamespaces: Array.isArray(namespaces) ? namespaces.map(String) : defaultSettings.skipNamespaces,
    reapplyOnReboot: file['reapplyOnReboot'] === true,
    ignoreNodeWright: file[ignoreNodeWrightSetting] === true,
    defaultBudget,
  }
}

/** Where the agents keep output of steps on each host; undefined if the settings lack it. */
export function logRootIn(configMap: ConfigMapObject): string | undefined {
  const { agentLogRoot } = readableSettings(configMap) ?? {}
  return typeof agentLogRoot === 'string' ? agentLogRoot : undefined
}

function defaultBudgetIn(file: JsonObject): Budget | undefined {
  try {
    return readDefaultBudget(file['defaults'])
  } catch {
    return undefined
  }
}

/** The budget of a Skyhook without a policy. Unknown if the agents' default decides and their settings are unknown. */
export function knownBudget(spec: SkyhookSpec, settings: Known<Pick<FleetSettings, 'defaultBudget'>>): Known<Budget> {
  if (settings.known || !takesDefaultBudget(spec))
    return known(budgetOf(spec, settings.known ? settings.value.defaultBudget : {}))
  return unknown(`defaults.interruptionBudget of the agents is not known: ${settings.why}`)
}

/** `key=value:effect` or `key:effect`. */
function taintOf(text: unknown): StageSettings['runtimeRequiredTaint'] | undefined {
  const [, key, value, effect] = /^([^=:]+)(?:=([^:]*))?:(\w+)$/.exec(typeof text === 'string' ? text : '') ?? []
  if (key === undefined || effect === undefined) return undefined
  return { key, ...(value !== undefined && value !== '' && { value }), effect }
}
