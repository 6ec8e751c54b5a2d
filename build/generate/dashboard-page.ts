/**
 * The page of `kubectl skyhook dashboard`, for where the command-line tool finds it, also when it runs from its
 * sources.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type BuildResult } from 'esbuild'

const repository = join(import.meta.dirname, '..', '..')
const folder = join(repository, 'src/cli/dashboard/page')

/** The page's script, and what is in it. */
export const pageScript = async (): Promise<BuildResult<{ write: false; metafile: true }>> =>
  await build({
    absWorkingDir: repository,
    entryPoints: [join(folder, 'main.ts')],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'browser',
    target: 'es2022',
    format: 'iife',
    legalComments: 'none', // the licenses are gathered with those of the tool
    logLevel: 'warning',
  })

/** The three files that the browser gets. The same sources give the same text. */
export async function dashboardPage(): Promise<{
  readonly html: string
  readonly css: string
  readonly script: string
}> {
  const { outputFiles } = await pageScript()
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  return { html: read('page.html'), css: read('page.css'), script: outputFiles[0]?.text ?? '' }
}
