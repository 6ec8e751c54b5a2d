import { isAbsolute } from 'node:path'
import { minLogLimitBytes } from '../../packages/step/log-limit.ts'
import { countIn } from '../../packages/step/quantity.ts'
import type { FieldValues } from '../../packages/step/references.ts'
import { type Budget, readDefaultBudget } from '../../schemas/budget.ts'
import { isObject, type JsonObject, messageOf } from '../../schemas/json.ts'
import type { Taint } from '../../schemas/kubernetes.ts'
import { ignoreNodeWrightSetting } from '../../schemas/nodewright.ts'
import { readSettingsAt, settingsPath } from './settings-files.ts'

/** The agent's settings from the chart: files for the cluster's settings, the downward API for facts about the pod. */
export type Settings = {
  readonly nodeName: string
  readonly podName: string
  readonly namespace: string
  /** The fields that fieldRef in a package's env supports. */
  readonly fieldValues: FieldValues
  /** Where the host's `/` is mounted in the container. */
  readonly hostRoot: string
  readonly copyDirRoot: string
  readonly agentLogRoot: string
  /** Limit of the file of each stream of a step. */
  readonly stepLogLimitBytes: number
  readonly runtimeRequiredTaint: Taint
  readonly logLevel: string
  readonly metrics: { readonly enabled: boolean; readonly port: number }
  /** The kubelet's probes, on loopback. */
  readonly health: { readonly port: number }
  readonly registries: readonly RegistrySetting[]
  /** Names of Secrets of type kubernetes.io/dockerconfigjson in the agent's namespace. */
  readonly imagePullSecrets: readonly string[]
  readonly proxy: { readonly httpsProxy?: string; readonly noProxy?: string }
  readonly drain: { readonly skipNamespaces: readonly string[]; readonly allowDelete: boolean }
  readonly reapplyOnReboot: boolean
  /** State of another operator is ignored (docs/usage/takeover.md). */
  readonly ignoreNodeWright: boolean
  /** For Skyhooks without a budget or a policy; `{}` means no limit. */
  readonly defaultBudget: Budget
  readonly estimatedNodeCount: number
}

export type RegistrySetting = {
  readonly host: string
  readonly mirrors?: readonly string[]
  /** Secret in the agent's namespace whose `ca.crt` signs the registry's certificate. */
  readonly caSecret?: string
  readonly plainHTTP?: boolean
}

/** Reads and checks the settings; throws one sentence that names the setting. */
export function readSettings(env: NodeJS.ProcessEnv, path = env['SKYHOOKD_SETTINGS'] ?? settingsPath): Settings {
  const file = readSettingsAt(path)
  const record = (key: string): JsonObject => (isObject(file[key]) ? file[key] : {})
  const text = (value: unknown, name: string, fallback: string): string => {
    if (value === undefined || value === '') return fallback
    if (typeof value !== 'string') throw new Error(`${path}: ${name} must be a string, not ${JSON.stringify(value)}`)
    return value
  }
  const nodeName = requiredEnv(env, 'NODE_NAME')
  const namespace = requiredEnv(env, 'POD_NAMESPACE')
  const metrics = record('metrics')
  const proxy = record('proxy')
  const httpsProxy = text(proxy['httpsProxy'], 'proxy.httpsProxy', '')
  const noProxy = text(proxy['noProxy'], 'proxy.noProxy', '')
  return {
    nodeName,
    podName: requiredEnv(env, 'POD_NAME'),
    namespace,
    fieldValues: { nodeName, namespace, hostIp: env['HOST_IP'] ?? '127.0.0.1' },
    hostRoot: env['SKYHOOKD_HOST_ROOT'] ?? '/host',
    copyDirRoot: absolutePath(text(file['copyDirRoot'], 'copyDirRoot', '/var/lib/skyhook'), `${path}: copyDirRoot`),
    agentLogRoot: absolutePath(text(file['agentLogRoot'], 'agentLogRoot', '/var/log/skyhook'), `${path}: agentLogRoot`),
    stepLogLimitBytes: bytesOf(text(file['stepLogLimit'], 'stepLogLimit', '16Mi'), `${path}: stepLogLimit`),
    runtimeRequiredTaint: parseTaint(
      text(file['runtimeRequiredTaint'], 'runtimeRequiredTaint', 'skyhook.nvidia.com=runtime-required:NoSchedule'),
    ),
    logLevel: text(file['logLevel'], 'logLevel', 'info'),
    metrics: { enabled: metrics['enabled'] !== false, port: Number(metrics['port'] ?? 9475) },
    health: { port: Number(record('health')['port'] ?? 336) },
    registries: (Array.isArray(file['registries']) ? file['registries'] : []) as RegistrySetting[],
    imagePullSecrets: (Array.isArray(file['imagePullSecrets']) ? file['imagePullSecrets'] : []) as string[],
    proxy: { ...(httpsProxy && { httpsProxy }), ...(noProxy && { noProxy }) },
    drain: {
      skipNamespaces: (record('drain')['skipNamespaces'] as string[] | undefined) ?? ['kube-system'],
      allowDelete: record('drain')['allowDelete'] === true,
    },
    reapplyOnReboot: file['reapplyOnReboot'] === true,
    ignoreNodeWright: file[ignoreNodeWrightSetting] === true,
    defaultBudget: defaultBudget(file['defaults'], path),
    estimatedNodeCount: Number(file['estimatedNodeCount'] ?? 0),
  }
}

function defaultBudget(defaults: unknown, path: string): Budget {
  try {
    return readDefaultBudget(defaults)
  } catch (error) {
    throw new Error(`${path}: ${messageOf(error)}`, { cause: error })
  }
}

/** `key=value:effect` or `key:effect`. */
export function parseTaint(text: string): Taint {
  const match = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(text)
  const [, key, value, effect] = match ?? []
  if (key === undefined || effect === undefined)
    throw new Error(`runtimeRequiredTaint: ${JSON.stringify(text)} is not of the form key=value:effect`)
  return { key, ...(value !== undefined && value !== '' && { value }), effect }
}

function requiredEnv(env: NodeJS.ProcessEnv, name: string): string {
  const value = env[name]
  if (!value) throw new Error(`the environment variable ${name} is not set: the chart sets it by the downward API`)
  return value
}

function bytesOf(quantity: string, name: string): number {
  const bytes = Number(countIn(quantity, 1) ?? 0)
  if (bytes < minLogLimitBytes)
    throw new Error(`${name} must be a size of 1Mi or more, not ${JSON.stringify(quantity)}`)
  return bytes
}

function absolutePath(path: string, name: string): string {
  if (!path.startsWith('/'))
    throw new Error(`${name} must be an absolute path on the host, not ${JSON.stringify(path)}`)
  return path.replace(/\/+$/, '')
}

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
