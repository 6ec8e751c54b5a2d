/** Programs of Debian packages, for tests and builds. They are downloaded once and kept in the cache, not installed. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cacheFolder } from './cache.ts'
import { type Architecture, extractPackage, fetchNewest, fetchPackage, type PackagePin } from './debian-packages.ts'

/**
 * The folder with these programs of the package's `/usr/bin`, for this machine's architecture. A digest of '' is of an
 * architecture that nobody has tried: the newest version is taken there. May run in several processes at once.
 * @throws Error if apt cannot download the package
 */
export function programsOfPackage(name: string, pin: PackagePin, programs: readonly string[]): string {
  const architecture: Architecture = process.arch === 'arm64' ? 'arm64' : 'amd64'
  const folder = cacheFolder('programs', `${name}_${pin.version.replace(':', '%3a')}_${architecture}`)
  if (existsSync(folder)) return folder
  mkdirSync(dirname(folder), { recursive: true })
  const work = mkdtempSync(join(dirname(folder), '.unpack-'))
  try {
    const isPinned = pin.sha256[architecture] !== ''
    extractPackage(isPinned ? fetchPackage(name, pin, architecture, false) : fetchNewest(name, architecture), work)
    const unpacked = join(work, 'usr/bin')
    // the emulators of all architectures take 370 MB
    for (const one of readdirSync(unpacked)) if (!programs.includes(one)) rmSync(join(unpacked, one))
    moveUnlessThere(unpacked, folder)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  return folder
}

function moveUnlessThere(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if (!existsSync(to)) throw error // otherwise another process was first
  }
}
