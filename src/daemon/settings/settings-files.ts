/** Reads the settings that the chart mounts: each key of its ConfigMap is a file. */
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type JsonObject, messageOf } from '../../schemas/json.ts'
import { hasSettings, settingKeys, settingsFile, settingsIn } from '../../schemas/setting-keys.ts'

export const settingsPath = '/etc/skyhookd'

/**
 * The settings in a folder with a file for each setting, or in one JSON file.
 * @throws Error of one sentence that names path and setting
 */
export function readSettingsAt(path: string): JsonObject {
  const data = readData(path)
  if (!hasSettings(data)) throw new Error(`${path} has no settings: ${origin}`)
  try {
    return settingsIn(data)
  } catch (error) {
    throw new Error(`${path}: ${messageOf(error)}`, { cause: error })
  }
}

const origin = 'the chart mounts it from the ConfigMap of the release'

function readData(path: string): Record<string, string> {
  try {
    if (!statSync(path).isDirectory()) return { [settingsFile]: readFileSync(path, 'utf8') }
    // The kubelet replaces the whole target of this link when the ConfigMap changes.
    const current = join(path, '..data')
    const folder = existsSync(current) ? realpathSync(current) : path
    const names = [settingsFile, ...settingKeys].filter((name) => existsSync(join(folder, name)))
    return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
  } catch (error) {
    throw new Error(`${path} cannot be read: ${origin}`, { cause: error })
  }
}
