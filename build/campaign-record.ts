/** Where a campaign of hours keeps what it has shown: a file of the user's cache, for one state of the sources. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { build } from 'esbuild'
import { cacheFolder } from './cache.ts'

const repository = join(import.meta.dirname, '..')

/** Of tests. A bundle of vitest would be a bundle of its tools. */
const testTools = ['vitest', 'fast-check']

type CampaignRecord = { readonly sources: string; readonly file: string }

/**
 * The file, whose folder exists. Other sources have another one, which is empty at first.
 * @param paths what the results depend on, from the root of the repository: programs with all that they import, and
 *   other files and folders as they are
 */
export async function campaignRecord(campaign: string, paths: readonly string[]): Promise<CampaignRecord> {
  const programs = paths.filter(isProgram)
  const hashes = await hashesOf(programs)
  const hash = createHash('sha256')
  for (const program of programs) hash.update(hashes.get(program) ?? '')
  hash.update(hashOfFiles(paths.filter((path) => !isProgram(path))))
  const sources = hash.digest('hex').slice(0, 16)
  return { sources, file: await recordFile(`${campaign}-${sources}`) }
}

/** Its folder exists. */
export async function recordFile(name: string): Promise<string> {
  const file = cacheFolder('campaigns', name)
  await mkdir(dirname(file), { recursive: true })
  return file
}

const isProgram = (path: string): boolean => /\.[jt]s$/.test(path)

/** Of each of these programs with all that it imports, without comments. */
export async function hashesOf(programs: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const { outputFiles, metafile } = await build({
    entryPoints: programs.map((program) => join(repository, program)),
    absWorkingDir: repository, // paths are part of the result
    outdir: 'dist', // nothing is written
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    external: testTools,
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'error',
  })
  const contents = new Map(outputFiles.map((file) => [file.path, file.contents]))
  const hashes = new Map(
    Object.entries(metafile.outputs).map(([path, { entryPoint = path }]) => [
      entryPoint,
      hashOf(contents.get(join(repository, path)) ?? ''),
    ]),
  )
  const unknown = programs.filter((program) => !hashes.has(program))
  if (unknown.length > 0) throw new Error(`must be paths from the root, as esbuild names them: ${unknown.join(', ')}`)
  return hashes
}

/** Of files and folders as they are, with their names. */
export function hashOfFiles(paths: readonly string[]): string {
  const hash = createHash('sha256')
  for (const path of paths)
    for (const file of filesIn(path)) hash.update(`${file}\n${hashOf(readFileSync(join(repository, file)))}\n`)
  return hash.digest('hex')
}

function filesIn(path: string): readonly string[] {
  if (statSync(join(repository, path)).isFile()) return [path]
  const below = readdirSync(join(repository, path), { recursive: true, withFileTypes: true })
  const files = below.filter((entry) => entry.isFile())
  return files.map((entry) => relative(repository, join(entry.parentPath, entry.name))).toSorted()
}

const hashOf = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')
