import { createHash } from 'node:crypto'
import type { BusConnection } from '../../host/dbus/reconnecting.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { flagValue, type KubeletProcess, readKubeletProcess } from '../../host/kubelet/process.ts'
import { runPlugin } from '../../host/kubelet/run-plugin.ts'
import {
  type ConfigDocument,
  type CredentialProvider,
  parseProviderConfig,
} from '../../packages/oci/provider/config.ts'
import { createCredentialProviders, type ProviderSource } from '../../packages/oci/provider/provide.ts'
import type { LoginProvider } from '../../packages/oci/read/logins.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import type { ProviderSettings } from '../settings/settings.ts'

export type ProviderHost = {
  readonly root: HostRoot
  readonly connectBus: () => BusConnection
  readonly clock: Clock
  readonly random: Random
}

const configFlag = 'image-credential-provider-config'
const binFolderFlag = 'image-credential-provider-bin-dir'

/**
 * The kubelet's credential providers on this host. Their location is read again for each image that needs them: an
 * administrator changes it with a restart of the kubelet, without restarting the agent. The D-Bus connection is open
 * only during the read.
 */
export function createHostCredentialProviders(
  settings: ProviderSettings,
  { root, connectBus, clock, random }: ProviderHost,
): LoginProvider {
  async function withConnection<T>(use: (connection: BusConnection) => Promise<T>): Promise<T> {
    const connection = connectBus()
    try {
      return await use(connection)
    } finally {
      connection.close()
    }
  }

  async function open(signal: AbortSignal): Promise<ProviderSource | undefined> {
    if (!settings.isEnabled) return undefined
    const kubelet = await withConnection((connection) => readKubeletProcess(connection, root, signal))
    const places = findPlaces(settings, kubelet)
    if (places === undefined) return undefined
    const { configPath, binFolder } = places
    const files = await readConfigFiles(root, configPath)
    const providers = parseProviderConfig(await Promise.all(files.map(parseConfigFile)))
    const variables = { environment: kubelet?.environment ?? {}, environmentFiles: kubelet?.environmentFiles ?? [] }
    return {
      providers,
      fingerprint: createHash('sha256')
        .update(JSON.stringify([binFolder, files, variables]))
        .digest('hex'),
      run: async ({ name, args, env }: CredentialProvider, input, runSignal) =>
        await withConnection(
          async (connection) =>
            await runPlugin(
              { root, connection, clock, random },
              { name, program: `${binFolder}/${name}`, args, kubelet: variables, environment: env, input },
              runSignal,
            ),
        ),
    }
  }

  return createCredentialProviders({ clock, open })
}

/** @throws Error if only one of the two is known */
function findPlaces(
  settings: ProviderSettings,
  kubelet: KubeletProcess | undefined,
): { readonly configPath: string; readonly binFolder: string } | undefined {
  const flag = (name: string): string | undefined => kubelet && flagValue(kubelet.commandLine, name)
  const configPath = settings.configPath ?? flag(configFlag)
  const binFolder = settings.binFolder ?? flag(binFolderFlag)
  if (configPath === undefined && binFolder === undefined) return undefined
  const missing = configPath === undefined ? configFlag : binFolder === undefined ? binFolderFlag : undefined
  if (missing !== undefined || configPath === undefined || binFolder === undefined)
    throw new Error(`the kubelet of this host has no --${missing}: set imageCredentialProviders in the chart's values`)
  const relative = [configPath, binFolder].find((path) => !path.startsWith('/'))
  if (relative !== undefined) throw new Error(`${relative} is not an absolute path: set imageCredentialProviders`)
  return { configPath, binFolder }
}

type ConfigFile = { readonly path: string; readonly text: string }

/**
 * A file, or all files of a folder in the order of their names, as newer kubelets read them.
 * @throws Error that names the path; errors of the disk
 */
export async function readConfigFiles(root: HostRoot, configPath: string): Promise<readonly ConfigFile[]> {
  const stats = await root.stat(configPath)
  if (stats === undefined) throw new Error(`${configPath}: there is no such file on the host`)
  const names = stats.isDirectory() ? await root.readdir(configPath) : undefined
  const paths = names?.filter((name) => /\.(?:json|ya?ml)$/.test(name)).map((name) => `${configPath}/${name}`) ?? [
    configPath,
  ]
  if (paths.length === 0) throw new Error(`${configPath}: there is no .json or .yaml file in it`)
  return await Promise.all(
    paths.sort().map(async (path) => {
      return { path, text: (await root.readFile(path)).toString() }
    }),
  )
}

/** Parses JSON or YAML. @throws Error without quotes of the file, whose variables may be secrets */
export async function parseConfigFile({ path, text }: ConfigFile): Promise<ConfigDocument> {
  try {
    if (text.trimStart().startsWith('{')) return { path, document: JSON.parse(text) }
  } catch {
    // YAML that starts like JSON
  }
  const { parseDocument } = await import('yaml') // loaded only if the host has such a file
  const document = parseDocument(text, { version: '1.1', logLevel: 'error' })
  const [error] = document.errors // its message quotes the file
  if (error === undefined) return { path, document: document.toJS() }
  throw new Error(`${path}: is neither JSON nor YAML, line ${error.linePos?.[0].line ?? 1}`)
}
