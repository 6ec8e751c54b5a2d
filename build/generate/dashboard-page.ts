/**
 * Puts the page of `kubectl skyhook dashboard` where the command-line tool finds it, also when it runs from its
 * sources: `node build/generate/dashboard-page.ts`. The unit test beside this file fails when it is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const repository = join(import.meta.dirname, '..', '..')
const folder = join(repository, 'src/cli/dashboard/page')

/** Where the page is committed. */
export const committedPage = join(repository, 'src/cli/dashboard/generated/page.json')

/** The three files that the browser gets. The same sources give the same text. */
export async function dashboardPage(): Promise<{
  readonly html: string
  readonly css: string
  readonly script: string
}> {
  const { outputFiles } = await build({
    absWorkingDir: repository,
    entryPoints: [join(folder, 'main.ts')],
    bundle: true,
    write: false,
    platform: 'browser',
    target: 'es2022',
    format: 'iife',
    legalComments: 'none',
    logLevel: 'warning',
  })
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  return { html: read('page.html'), css: read('page.css'), script: outputFiles[0]?.text ?? '' }
}

if (import.meta.main) writeFileSync(committedPage, `${JSON.stringify(await dashboardPage(), null, 2)}\n`)
