/**
 * Whether the operator's program or an agent wrote last in the state folder of a Skyhook. Both keep the same files
 * there, in different formats. A file that an agent has continued belongs to the agent, even if the operator created
 * it.
 */
import { ignoreNotFound } from '../../host/fs/errors.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { isObject, parseJson } from '../../schemas/json.ts'

/** The first file by name of a package that the operator's program wrote last; undefined if there is none. */
export async function fileOfOperator(host: HostRoot, stateDir: string): Promise<string | undefined> {
  const packagesOfAgent = new Set<string>()
  for (const file of await namesIn(host, `${stateDir}/history`)) {
    const path = `${stateDir}/history/${file}`
    const text = file.endsWith('.json') ? await readFile(host, path) : undefined
    const history = text === undefined ? undefined : parseJson(text)
    if (!isObject(history)) continue // truncated by a crash: agents write atomically
    if (JSON.stringify(history) === text) packagesOfAgent.add(file.slice(0, -'.json'.length))
    else if (history['current-version'] !== 'uninstalled') return path
  }
  for (const name of await namesIn(host, `${stateDir}/flags`)) {
    if (packagesOfAgent.has(name)) continue
    const path = await flagOfOperator(host, `${stateDir}/flags/${name}`)
    if (path !== undefined) return path
  }
  return undefined
}

/** `<script>-<sha256>.flag` of the operator's newer program; agents never write such a name. */
const newerFlag = /-[0-9a-f]{64}\.flag$/

/** Agents write milliseconds, padded to the microseconds of the operator's older program. */
const flagOfAgent = /^last_run: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}000\n/

async function flagOfOperator(host: HostRoot, packageDir: string): Promise<string | undefined> {
  for (const version of await namesIn(host, packageDir))
    for (const name of await namesIn(host, `${packageDir}/${version}`)) {
      const path = `${packageDir}/${version}/${name}`
      if (newerFlag.test(name)) return path
      const content = (await readFile(host, path)) ?? ''
      if (content.startsWith('last_run: ') && !flagOfAgent.test(content)) return path
    }
  return undefined
}

/** Undefined if the path is not a regular file. */
const readFile = async (host: HostRoot, path: string): Promise<string | undefined> =>
  (await host.stat(path))?.isFile() === true ? await host.readText(path) : undefined

/** Sorted; empty if the path is not a folder. */
async function namesIn(host: HostRoot, path: string): Promise<readonly string[]> {
  const isFolder = (await host.stat(path))?.isDirectory() === true
  const names = isFolder ? await host.readdir(path).catch(ignoreNotFound) : undefined
  return (names ?? []).toSorted()
}
