/**
 * Debian packages for the image, of any architecture, from the mirrors of this machine's apt, without changing its
 * state. Their Debian, versions and digests are pinned in image-pins.json: a machine with another one makes the same.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cacheFolder } from './cache.ts'
import { debianSources, targetFormat } from './debian-sources.ts'

export type Architecture = 'amd64' | 'arm64'

export type PackagePin = { readonly version: string; readonly sha256: Readonly<Record<Architecture, string>> }

export type DebianPackage = {
  readonly name: string
  readonly version: string
  readonly sha256: string
  readonly file: string
}

/**
 * A pinned package: from the cache, else from the mirrors of this machine's apt. Mirrors keep only the newest version,
 * so a pin fails after the next point release: then this takes the newest version and logs it, unless `isLocked`, which
 * releases use.
 * @throws Error if the package is not available or does not match its pin
 */
export function fetchPackage(
  name: string,
  pin: PackagePin,
  architecture: Architecture,
  isLocked: boolean,
): DebianPackage {
  const cached = cachedFile(name, pin.version, architecture)
  if (!existsSync(cached) && !download(name, pin.version, architecture)) {
    const newest = newestVersion(name, architecture)
    const gone = `${name} ${pin.version} (${architecture}) is not on the mirror any more, ${newest} is`
    if (isLocked) throw new Error(`${gone}: run "node build/image.ts --update-pins" and commit the result`)
    console.warn(`image: ${gone}; it is taken instead. "node build/image.ts --update-pins" records it`)
    return fetchNewest(name, architecture)
  }
  const found = packageFromFile(name, pin.version, cached)
  if (found.sha256 !== pin.sha256[architecture])
    throw new Error(`${cached} has sha256 ${found.sha256}, expected ${pin.sha256[architecture]}`)
  return found
}

/** The version that the mirrors offer now. apt has verified it against the archive's signature. */
export function fetchNewest(name: string, architecture: Architecture): DebianPackage {
  const version = newestVersion(name, architecture)
  const file = cachedFile(name, version, architecture)
  if (!existsSync(file) && !download(name, version, architecture))
    throw new Error(`apt-get could not download ${name} ${version} (${architecture})`)
  return packageFromFile(name, version, file)
}

/** Unpacks a package's files. */
export function extractPackage({ file }: DebianPackage, folder: string): void {
  execFileSync('dpkg-deb', ['-x', file, folder])
}

/** The package's own description, in the form that dpkg keeps for installed packages. */
export function controlOf({ file }: DebianPackage): string {
  return execFileSync('dpkg-deb', ['-f', file], { encoding: 'utf8' })
}

function packageFromFile(name: string, version: string, file: string): DebianPackage {
  return { name, version, file, sha256: createHash('sha256').update(readFileSync(file)).digest('hex') }
}

function cachedFile(name: string, version: string, architecture: Architecture): string {
  return join(cacheFolder('debian'), `${name}_${version.replace(':', '%3a')}_${architecture}.deb`)
}

function download(name: string, version: string, architecture: Architecture): boolean {
  if (!availableVersions(name, architecture).includes(version)) return false
  const folder = cacheFolder('debian')
  mkdirSync(folder, { recursive: true })
  const work = mkdtempSync(join(folder, '.download-'))
  try {
    apt('apt-get', architecture, ['download', `${name}=${version}`], work)
    const [file] = readdirSync(work)
    if (file !== undefined) renameSync(join(work, file), cachedFile(name, version, architecture))
    return file !== undefined
  } finally {
    rmSync(work, { recursive: true })
  }
}

function newestVersion(name: string, architecture: Architecture): string {
  const [newest] = availableVersions(name, architecture)
  if (newest === undefined) throw new Error(`this machine's package sources have no ${name} for ${architecture}`)
  return newest
}

/** Versions on the mirrors, newest first: `libc6 | 2.36-9 | http://…` per line. */
function availableVersions(name: string, architecture: Architecture): string[] {
  return apt('apt-cache', architecture, ['madison', name])
    .split('\n')
    .flatMap((line) => line.split('|')[1]?.trim() ?? [])
}

const states = new Map<Architecture, string>()
/** In the folder of the state, instead of the machine's own sources. */
const sourcesName = 'sources.list'

/** Lists and state of apt for one architecture and this process: two builds at once would fight over apt's lock. */
function stateFolder(architecture: Architecture): string {
  const known = states.get(architecture)
  if (known !== undefined) return known
  const folder = mkdtempSync(join(tmpdir(), `apt-${architecture}-`))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'state/lists/partial'), { recursive: true })
  mkdirSync(join(folder, 'cache/archives/partial'), { recursive: true })
  writeFileSync(join(folder, 'status'), '') // no package is installed there
  states.set(architecture, folder)
  console.error(`image: reading the package lists for ${architecture}`)
  writeFileSync(join(folder, sourcesName), sourcesOfImage(architecture))
  apt('apt-get', architecture, ['update'])
  return folder
}

/** @throws Error where this machine's apt knows no mirror of Debian */
function sourcesOfImage(architecture: Architecture): string {
  const { debian } = JSON.parse(readFileSync(join(import.meta.dirname, 'image-pins.json'), 'utf8')) as {
    readonly debian: { readonly codename: string }
  }
  const { DEBIAN_MIRROR: mirror } = process.env
  const found = (targets: string): string | undefined => debianSources(debian.codename, targets, mirror)
  const targets = ['indextargets', '--format', targetFormat, 'Created-By: Packages']
  const known = found(run('apt-get', targets))
  if (known !== undefined) return known
  apt('apt-get', architecture, ['update']) // the origin of a source stands in its lists
  const read = found(apt('apt-get', architecture, targets))
  if (read !== undefined) return read
  throw new Error("the image's libraries come from Debian, and apt names no Debian source: set DEBIAN_MIRROR")
}

function apt(
  program: 'apt-get' | 'apt-cache',
  architecture: Architecture,
  parameters: readonly string[],
  cwd = '/',
): string {
  const root = stateFolder(architecture)
  const settings = {
    'Dir::State': join(root, 'state'),
    'Dir::State::status': join(root, 'status'),
    'Dir::Cache': join(root, 'cache'),
    'APT::Architecture': architecture,
    'APT::Architectures::': architecture,
    'APT::Sandbox::User': 'root', // _apt cannot read a user's cache
    'Acquire::Languages': 'none',
    'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled': 'false',
  }
  const sources = join(root, sourcesName)
  const own = existsSync(sources) ? { 'Dir::Etc::sourcelist': sources, 'Dir::Etc::sourceparts': '/dev/null' } : {}
  const options = Object.entries({ ...settings, ...own }).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  return run(program, ['-q', ...options, ...parameters], cwd)
}

function run(program: 'apt-get' | 'apt-cache', parameters: readonly string[], cwd = '/'): string {
  try {
    return execFileSync(program, parameters, {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      throw new Error(
        `${program} is missing: the image's libraries come from Debian packages, build on Debian or Ubuntu`,
        { cause: error },
      )
    }
    throw error
  }
}
