/**
 * Bundles the agent into one CommonJS file: `node build/bundle.ts`; with `--cli`, the command-line tool. One file
 * because an agent that loads a hundred modules starts later and keeps 13 MB more; CommonJS because an ES module that
 * imports node:http pulls in all of Node's fetch.
 */
import { chmodSync, cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Metafile, type Plugin } from 'esbuild'
import { pageScript } from './generate/dashboard-page.ts'
import { type BundledPackage, licenseText } from './license-text.ts'

const repository = join(import.meta.dirname, '..')

export type Bundle = {
  /** The program. */
  readonly file: string
  /** Licenses of everything bundled; they accompany the program. */
  readonly notices: string
  readonly version: string
  /** Of which files are in the program, by name. */
  readonly packages: readonly BundledPackage[]
}

export type CliBundle = Bundle & {
  /** What a person starts; the program must lie beside it. */
  readonly starter: string
}

/** The version that package.json states; also the image's label. */
export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { version: string }
  return version
}

type Program = {
  readonly entry: string
  readonly file: string
  /** Beside the program. */
  readonly notices: string
  readonly banner: string
  readonly plugins?: Plugin[]
  /** Programs that it contains as text. */
  readonly embedded?: readonly Metafile[]
}

/** Writes `skyhookd.cjs`, its source map and the licenses of what it contains. The same sources give the same bytes. */
export async function bundle({
  entry = join(repository, 'src/daemon/main.ts'),
  folder = join(repository, 'dist'),
} = {}): Promise<Bundle> {
  return await bundleProgram(folder, { entry, file: 'skyhookd.cjs', notices: 'THIRD-PARTY-LICENSES', banner: '' })
}

/**
 * Writes the npm package of the command-line tool: `kubectl-skyhook`, which Node starts and which loads the program
 * beside it, `kubectl_complete-skyhook`, by which kubectl completes, the schemas of the documents that it writes, and
 * their licenses.
 */
export async function bundleCli(folder = join(repository, 'dist/cli')): Promise<CliBundle> {
  const result = await bundleProgram(folder, {
    entry: join(repository, 'src/cli/main.ts'),
    file: cliProgram,
    notices: 'THIRD-PARTY-LICENSES',
    banner: '',
    plugins: [withoutGeneratedClients],
    embedded: [(await pageScript()).metafile],
  })
  const starter = join(folder, 'kubectl-skyhook')
  await build({
    absWorkingDir: repository,
    entryPoints: [join(repository, 'src/cli/start.ts')],
    outfile: starter,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    banner: { js: '#!/usr/bin/env node' },
    plugins: [withProgramBeside],
    logLevel: 'warning',
  })
  const completer = join(folder, 'kubectl_complete-skyhook')
  writeFileSync(completer, '#!/bin/sh\nexec "$(dirname "$0")/kubectl-skyhook" __complete "$@"\n')
  for (const file of [starter, completer]) chmodSync(file, 0o755)
  cpSync(join(repository, 'src/cli/json-schemas'), join(folder, 'schemas'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(cliPackage(result.version), null, 2)}\n`)
  return { ...result, starter }
}

const cliProgram = 'kubectl-skyhook.cjs'

/** The starter loads the program from its own folder. */
const withProgramBeside: Plugin = {
  name: 'with-program-beside',
  setup(builder) {
    builder.onResolve({ filter: /^\.\/main\.ts$/ }, () => ({ path: `./${cliProgram}`, external: true }))
  },
}

/** Also says that the files are CommonJS, whatever a folder above says. */
const cliPackage = (version: string): object => ({
  name: 'kubectl-skyhook',
  version,
  description: 'See, understand, plan and change what skyhookd does on the nodes of a cluster',
  license: 'Apache-2.0',
  type: 'commonjs',
  engines: { node: '>=24' },
  bin: { 'kubectl-skyhook': 'kubectl-skyhook', 'kubectl_complete-skyhook': 'kubectl_complete-skyhook' },
  files: ['kubectl-skyhook', cliProgram, 'kubectl_complete-skyhook', 'schemas', 'THIRD-PARTY-LICENSES'],
})

/** The official library's generated clients: 60 MB of sources that reading a kubeconfig does not need. */
const withoutGeneratedClients: Plugin = {
  name: 'without-generated-clients',
  setup(builder) {
    builder.onLoad({ filter: /client-node\/dist\/gen\/index\.js$/ }, () => ({
      contents: 'export class ServerConfiguration {}\nexport const createConfiguration = () => ({})\n',
    }))
  },
}

async function bundleProgram(folder: string, options: Program): Promise<Bundle> {
  const { entry, banner, plugins = [], embedded = [], ...program } = options
  const version = readVersion()
  const file = join(folder, program.file)
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
    banner: {
      js: `${banner}/*! skyhookd ${version}, Apache-2.0; licences of bundled packages: ${program.notices} */`,
    },
    plugins,
    define: { SKYHOOKD_VERSION: JSON.stringify(version) },
    metafile: true,
    logLevel: 'warning',
  })
  const packages = packagesOf([result.metafile, ...embedded])
  const notices = join(folder, program.notices)
  mkdirSync(folder, { recursive: true })
  writeFileSync(notices, packages.map(noticeOf).join('\n\n'))
  return { file, notices, version, packages }
}

function packagesOf(programs: readonly Metafile[]): BundledPackage[] {
  const files = programs.flatMap(({ inputs }) => Object.keys(inputs))
  const folders = new Set(files.flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []))
  return [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(repository, folder, 'package.json'), 'utf8'),
    ) as Omit<BundledPackage, 'folder'>
    return { name, version, license, folder }
  })
}

const noticeOf = (bundled: BundledPackage): string =>
  `${bundled.name} ${bundled.version}\n${'-'.repeat(72)}\n${licenseText(repository, bundled)}\n`

if (import.meta.main) {
  const { file, version } = process.argv.includes('--cli') ? await bundleCli() : await bundle()
  console.log(`${file}: skyhookd ${version}, ${Math.round(statSync(file).size / 1024)} KiB`)
}
