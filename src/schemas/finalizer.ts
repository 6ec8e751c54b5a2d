/** The finalizer that keeps a Skyhook while nodes still must uninstall: the census adds and removes it. */
import { apiGroup } from './api.ts'
import type { SkyhookSpec } from './skyhook.ts'

export const finalizerName = `${apiGroup}/skyhook`

/** Names of packages that are uninstalled when the Skyhook is deleted. */
export const packagesToUninstall = ({ packages = {} }: SkyhookSpec): ReadonlySet<string> =>
  new Set(Object.entries(packages).flatMap(([name, { uninstall }]) => (uninstall?.enabled === true ? [name] : [])))
