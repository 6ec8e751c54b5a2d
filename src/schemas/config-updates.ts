import { isObject } from './json.ts'

/**
 * `status.configUpdates`: keys of configMaps that the last roll of configuration touched, by package. The Skyhook
 * operator uses them to decide which interrupt is due.
 */
export type ConfigUpdates = Readonly<Record<string, readonly string[]>>

/** Undefined where the status lacks them or has another type under that name. */
export function configUpdatesOf(status: Readonly<Record<string, unknown>> | undefined): ConfigUpdates | undefined {
  const updates = status?.['configUpdates']
  return isObject(updates) && Object.values(updates).every(isListOfText) ? (updates as ConfigUpdates) : undefined
}

const isListOfText = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')
