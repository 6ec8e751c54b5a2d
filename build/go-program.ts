/**
 * Programs in Go, for tests and for the archives of the tool, built from Go modules into the user's cache: once for
 * each content of their folder.
 */
import { execFile } from 'node:child_process'
import { createHash, type Hash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from './cache.ts'
import type { Architecture } from './debian-packages.ts'

/**
 * Resolves with the path of the program in `folder`, which has go.mod, go.sum and its sources. The first time, Go
 * fetches and compiles what it imports: minutes on a busy machine. May run in several processes at once.
 */
export async function goProgram(folder: string): Promise<string> {
  return await goBuild(folder, basename(folder), hashOf(folder), [], {})
}

/**
 * The same for Linux on this architecture, without paths, symbols and build id: the same sources and the same Go give
 * the same bytes.
 */
export async function goProgramFor(folder: string, architecture: Architecture): Promise<string> {
  const hash = hashOf(folder).update(await goVersion())
  const env = { GOOS: 'linux', GOARCH: architecture, GOAMD64: 'v1', GOARM64: 'v8.0', GOFLAGS: '' }
  return await goBuild(folder, `${basename(folder)}-${architecture}`, hash, ['-ldflags=-s -w -buildid='], env)
}

async function goBuild(
  folder: string,
  name: string,
  hash: Hash,
  flags: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const program = cacheFolder('bin', `${name}-${hash.digest('hex').slice(0, 16)}`)
  if (existsSync(program)) return program
  mkdirSync(cacheFolder('bin'), { recursive: true })
  const partial = `${program}.${process.pid}`
  await go(['build', '-buildvcs=false', '-trimpath', ...flags, '-o', partial, '.'], folder, environment)
  renameSync(partial, program)
  return program
}

function hashOf(folder: string): Hash {
  const hash = createHash('sha256')
  for (const file of readdirSync(folder).sort())
    if (/\.go$|^go\.(mod|sum)$/.test(file)) hash.update(`${file}\0`).update(readFileSync(join(folder, file)))
  return hash
}

/** Brings Go where the machine has none or an older one. */
const toolchain = join(import.meta.dirname, 'toolchain.sh')

/** Such as `go1.26.1`. */
export const goVersion = async (): Promise<string> => (await go(['env', 'GOVERSION'], '/', {})).trim()

async function go(
  parameters: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const env = { ...process.env, CGO_ENABLED: '0', ...environment }
  try {
    return (await promisify(execFile)(toolchain, ['go', ...parameters], { cwd: folder, env })).stdout
  } catch (error) {
    throw new Error(`go could not ${parameters[0]} in ${folder}`, { cause: error })
  }
}
