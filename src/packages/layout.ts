/** Paths on the host. The names are the operator's: people and their tools know them. */

import type { InterruptType } from '../schemas/skyhook.ts'

export type HostFolders = {
  /** Default `/var/lib/skyhook`. */
  readonly copyDirRoot: string
  /** Default `/var/log/skyhook`. */
  readonly agentLogRoot: string
}

/** One package of one Skyhook at the generation at which its work started. */
export type PackageInstance = {
  readonly skyhook: string
  readonly skyhookUid: string
  readonly generation: number
  /** Name and version in the Skyhook; config.json may have others. */
  readonly name: string
  readonly version: string
}

/** Flags, history, interrupt flags and the copy dirs of one Skyhook: SKYHOOK_ROOT_DIR of steps. */
export const stateDir = (folders: HostFolders, skyhook: string): string => `${folders.copyDirRoot}/${skyhook}`

/** Logs of one Skyhook: SKYHOOK_LOG_DIR. */
export const logDir = (folders: HostFolders, skyhook: string): string => `${folders.agentLogRoot}/${skyhook}`

/** The package's content with its configuration: SKYHOOK_DIR, and the folder that steps run in. */
export function copyDir(
  folders: HostFolders,
  { skyhook, skyhookUid, generation, name, version }: PackageInstance,
): string {
  return `${stateDir(folders, skyhook)}/${name}-${version}-${skyhookUid}-${generation}`
}

/** SKYHOOK_RESOURCE_ID: packages split it at `_` into exactly three parts; no name or version contains one. */
export function resourceId({ skyhook, skyhookUid, generation, name, version }: PackageInstance): string {
  return `${skyhook}-${skyhookUid}-${generation}_${name}_${version}`
}

/** The folder of scripts inside a package or a copy dir. */
export const scriptsDir = (dir: string): string => `${dir}/skyhook_dir`

/** The names of interrupts in flags and logs. */
export const interruptTypeNames: Readonly<Record<InterruptType, string>> = {
  reboot: 'node_restart',
  service: 'service_restart',
  restartAllServices: 'restart_all_services',
  noop: 'no_op',
}
