import type { HostRoot } from '../../host/fs/host-root.ts'
import type { ConfigDocument } from '../../packages/oci/provider/config.ts'

export type ConfigFile = { readonly path: string; readonly text: string }

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
