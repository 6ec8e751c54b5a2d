/**
 * Bundles the agent into one CommonJS file: `node build/bundle.ts`. One file because an agent that loads a hundred
 * modules starts later and keeps 13 MB more; CommonJS because an ES module that imports node:http pulls in all of
 * Node's fetch.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Metafile } from 'esbuild'

const repository = join(import.meta.dirname, '..')

export type Bundle = {
  /** The program. */
  readonly file: string
  /** Licenses of everything bundled; they accompany the program. */
  readonly notices: string
  readonly version: string
}

/** The version that package.json states; also the image's label. */
export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { version: string }
  return version
}

/** Writes `skyhookd.cjs`, its source map and the licenses of what it contains. The same sources give the same bytes. */
export async function bundle({
  entry = join(repository, 'src/daemon/main.ts'),
  folder = join(repository, 'dist'),
} = {}): Promise<Bundle> {
  const version = readVersion()
  const file = join(folder, 'skyhookd.cjs')
  const result = await build({
    absWorkingDir: repository,
    entryPoints: [entry],
    outfile: file,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    minify: true,
    // 2 MB that no node needs: it gives the functions of a minified stack trace their names
    sourcemap: 'external',
    legalComments: 'none', // the licenses are gathered below
    banner: { js: `/*! skyhookd ${version}, Apache-2.0; licences of bundled packages: THIRD-PARTY-LICENSES */` },
    define: { SKYHOOKD_VERSION: JSON.stringify(version) },
    metafile: true,
    logLevel: 'warning',
  })
  const notices = join(folder, 'THIRD-PARTY-LICENSES')
  mkdirSync(folder, { recursive: true })
  writeFileSync(notices, noticesOf(result.metafile))
  return { file, notices, version }
}

function noticesOf({ inputs }: Metafile): string {
  const packages = new Set(
    Object.keys(inputs).flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
  )
  return [...packages]
    .sort()
    .map((folder) => {
      const { name, version, license } = JSON.parse(
        readFileSync(join(repository, folder, 'package.json'), 'utf8'),
      ) as Record<string, string>
      const file = readdirSync(join(repository, folder)).find((one) => /^licen[cs]e/i.test(one))
      const text =
        file !== undefined && existsSync(join(repository, folder, file))
          ? readFileSync(join(repository, folder, file), 'utf8').trim()
          : `License: ${license}`
      return `${name} ${version}\n${'-'.repeat(72)}\n${text}\n`
    })
    .join('\n\n')
}

if (import.meta.main) {
  const { file, version } = await bundle()
  console.log(`${file}: skyhookd ${version}, ${Math.round(statSync(file).size / 1024)} KiB`)
}
