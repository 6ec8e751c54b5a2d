import { isAbsolute } from 'node:path'
import { isObject } from '../../schemas/json.ts'
import { readSettingsAt, settingsPath } from './settings-files.ts'

/** Whether and where the agent finds the kubelet's credential providers. */
export type ProviderSettings = {
  readonly isEnabled: boolean
  /** Path on the host of a CredentialProviderConfig, or of a folder of them; by default that of the kubelet's flag. */
  readonly configPath?: string
  /** Folder on the host with the plugins; by default that of the kubelet's flag. */
  readonly binFolder?: string
}

/** Reads `imageCredentialProviders` of the settings; throws one sentence that names the setting. */
export function readProviderSettings(
  env: NodeJS.ProcessEnv,
  path = env['SKYHOOKD_SETTINGS'] ?? settingsPath,
): ProviderSettings {
  const value = readSettingsAt(path)['imageCredentialProviders']
  const { enabled, config, binDir } = isObject(value) ? value : {}
  const pathOf = (value: unknown, name: string): string | undefined => {
    if (value === undefined || value === '') return undefined
    if (typeof value === 'string' && isAbsolute(value)) return value.replace(/(?<=.)\/+$/, '')
    throw new Error(
      `${path}: imageCredentialProviders.${name} must be an absolute path on the host, not ${JSON.stringify(value)}`,
    )
  }
  const configPath = pathOf(config, 'config')
  const binFolder = pathOf(binDir, 'binDir')
  return { isEnabled: enabled !== false, ...(configPath && { configPath }), ...(binFolder && { binFolder }) }
}
