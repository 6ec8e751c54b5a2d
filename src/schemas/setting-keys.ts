/**
 * The agents' settings as the data of a ConfigMap: one key for each, named by its path, such as `drain.skipNamespaces`.
 * The chart of 0.1 wrote one JSON text instead. Both are read, and a key counts more than that text.
 */
import { isObject, type JsonObject, messageOf } from './json.ts'
import { ignoreNodeWrightSetting } from './nodewright.ts'

/** The key with all settings in one JSON text. */
export const settingsFile = 'settings.json'

/** `text`: the value is taken literally. `json`: it is parsed as JSON. */
const forms: Readonly<Record<string, 'text' | 'json'>> = {
  copyDirRoot: 'text',
  agentLogRoot: 'text',
  stepLogLimit: 'text',
  runtimeRequiredTaint: 'text',
  logLevel: 'text',
  reapplyOnReboot: 'json',
  [ignoreNodeWrightSetting]: 'json',
  estimatedNodeCount: 'json',
  'defaults.interruptionBudget': 'json',
  'drain.skipNamespaces': 'json',
  'drain.allowDelete': 'json',
  'metrics.enabled': 'json',
  'metrics.port': 'json',
  'health.port': 'json',
  registries: 'json',
  imagePullSecrets: 'json',
  'imageCredentialProviders.enabled': 'json',
  'imageCredentialProviders.config': 'text',
  'imageCredentialProviders.binDir': 'text',
  'proxy.httpsProxy': 'text',
  'proxy.noProxy': 'text',
}

export const settingKeys: readonly string[] = Object.keys(forms)

type Data = Readonly<Record<string, string>>

/** The settings, each at its path. Other keys are left alone. @throws Error that names a key whose value is not JSON */
export function settingsIn(data: Data): JsonObject {
  const text = data[settingsFile]
  return settingKeys.reduce<JsonObject>(
    (settings, key) => {
      const value = data[key]
      return value === undefined ? settings : withValue(settings, key.split('.'), valueOf(key, value))
    },
    text === undefined ? {} : objectOf(text),
  )
}

export const hasSettings = (data: Data): boolean =>
  data[settingsFile] !== undefined || settingKeys.some((key) => data[key] !== undefined)

function valueOf(key: string, text: string): unknown {
  return forms[key] === 'text' ? text : parsed(key, text)
}

function objectOf(text: string): JsonObject {
  const value = parsed(settingsFile, text)
  if (!isObject(value)) throw new Error(`${settingsFile} is not a JSON object`)
  return value
}

function parsed(key: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`${key} must be JSON: ${messageOf(error)}`, { cause: error })
  }
}

function withValue(object: JsonObject, [name = '', ...rest]: readonly string[], value: unknown): JsonObject {
  const inner = object[name]
  return { ...object, [name]: rest.length === 0 ? value : withValue(isObject(inner) ? inner : {}, rest, value) }
}
