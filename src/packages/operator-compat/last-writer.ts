/**
 * Whether an operator's program, and not an agent, wrote last in the state folder of a Skyhook. Both keep the same
 * files there and write them differently. What an agent has continued is the agent's, whoever began it.
 */
import type { HostRoot } from '../../host/fs/host-root.ts'
import { ignoreNotFound } from '../../host/fs/missing.ts'
import { isObject, parseJson } from '../../schemas/json.ts'

/** A file of a package that an operator's program wrote last, the first by name; undefined where there is none. */
export async function fileOfOperator(host: HostRoot, stateDir: string): Promise<string | undefined> {
  const packagesOfAgent = new Set<string>()
  for (const file of await namesIn(host, `${stateDir}/history`)) {
    const path = `${stateDir}/history/${file}`
    const text = file.endsWith('.json') ? await readFile(host, path) : undefined
    const history = text === undefined ? undefined : parseJson(text)
    if (!isObject(history)) continue // cut off by a crash, which no file of an agent is
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

/** `<script>-<sha256>.flag`, of its newer program; no agent writes such a name. */
const newerFlag = /-[0-9a-f]{64}\.flag$/

/** Agents have milliseconds, and fill them up to the microseconds of the older program. */
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

/** Undefined for what is no file. */
const readFile = async (host: HostRoot, path: string): Promise<string | undefined> =>
  (await host.stat(path))?.isFile() === true ? await host.readText(path) : undefined

/** Sorted; none of what is no folder. */
async function namesIn(host: HostRoot, path: string): Promise<readonly string[]> {
  const isFolder = (await host.stat(path))?.isDirectory() === true
  const names = isFolder ? await host.readdir(path).catch(ignoreNotFound) : undefined
  return (names ?? []).toSorted()
}
