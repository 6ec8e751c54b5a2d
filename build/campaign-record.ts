/** Where a campaign of hours keeps what it has shown: a file of the user's cache, for one state of the sources. */
import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { cacheFolder } from './cache.ts'

const repository = join(import.meta.dirname, '..')

/**
 * The file, whose folder exists. Other sources have another one, which is empty at first.
 * @param programs what the results depend on, with all that these files import; from the root of the repository
 */
export async function campaignRecord(
  campaign: string,
  programs: readonly string[],
): Promise<{ readonly sources: string; readonly file: string }> {
  const sources = await hashOfPrograms(programs)
  const file = cacheFolder('campaigns', `${campaign}-${sources}`)
  await mkdir(dirname(file), { recursive: true })
  return { sources, file }
}

/** Without comments. */
async function hashOfPrograms(programs: readonly string[]): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: programs.map((program) => join(repository, program)),
    absWorkingDir: repository, // paths are part of the result
    outdir: 'dist', // nothing is written
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'error',
  })
  const hash = createHash('sha256')
  for (const { contents } of outputFiles) hash.update(contents)
  return hash.digest('hex').slice(0, 16)
}
