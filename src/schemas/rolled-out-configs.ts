import { apiGroup } from './api.ts'
import { isObject, isTexts } from './json.ts'

/**
 * The configMap of each package that the Skyhook operator rolled out last, by package: the data of the ConfigMaps in
 * its namespace. A package without a ConfigMap is absent.
 */
export type RolledOutConfigs = Readonly<Record<string, Readonly<Record<string, string>>>>

/** Name of the ConfigMap in which the operator keeps it. */
export const rolledOutConfigName = (skyhook: string, packageName: string, version: string): string =>
  `${skyhook}-${packageName}-${version}`.toLowerCase()

type RolledOut = { readonly skyhook: string; readonly packageName: string; readonly version: string }

/** Whether the operator keeps the configuration of that package there, by its annotations. */
export const isRolledOutConfigOf = (
  { annotations = {} }: { readonly annotations?: Readonly<Record<string, string>> },
  { skyhook, packageName, version }: RolledOut,
): boolean =>
  annotations[`${apiGroup}/name`] === skyhook &&
  annotations[`${apiGroup}/Package.Name`] === packageName &&
  annotations[`${apiGroup}/Package.Version`] === version

/**
 * `status.configUpdates`: keys of configMaps that the last roll of configuration touched, by package. The Skyhook
 * operator uses them to decide which interrupt is due.
 */
export type ConfigUpdates = Readonly<Record<string, readonly string[]>>

/** Undefined where the status lacks them or has another type under that name. */
export function configUpdatesOf(status: Readonly<Record<string, unknown>> | undefined): ConfigUpdates | undefined {
  const updates = status?.['configUpdates']
  return isObject(updates) && Object.values(updates).every(isTexts) ? (updates as ConfigUpdates) : undefined
}
