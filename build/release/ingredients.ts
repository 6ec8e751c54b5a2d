/** What is in an artifact and was made elsewhere: by name, version, license and digest. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BundledPackage } from '../license-text.ts'
import type { Architecture, DebianPackage } from '../debian-packages.ts'
import { npmNameOf } from '../node-binary.ts'
import type { ImagePins } from '../runtime-layer.ts'

export type Ingredient = {
  /** In CycloneDX' words. */
  readonly type: 'application' | 'container' | 'file' | 'library' | 'platform'
  readonly name: string
  readonly version?: string
  /** In SPDX' words. */
  readonly license?: string
  /** Package URL, by which scanners know it. */
  readonly purl?: string
  readonly cpe?: string
  readonly hash?: Hash
  readonly contains?: readonly Ingredient[]
}

export type Hash = { readonly algorithm: 'sha256' | 'sha512'; readonly hex: string }

export type LockFile = {
  readonly packages: Readonly<Record<string, { readonly integrity?: string; readonly license?: unknown }>>
}

export function readLockFile(repository: string): LockFile {
  return JSON.parse(readFileSync(join(repository, 'package-lock.json'), 'utf8')) as LockFile
}

/** Of packages that state their license in a form of their own, by the text that they bring. */
const npmLicenses: Readonly<Record<string, string>> = {
  '@nornagon/put': 'MIT',
  jsbi: 'Apache-2.0',
  'map-stream': 'MIT',
}

/** @throws Error where the lock file lacks a package's digest or its license is unknown */
export function npmIngredients(bundled: readonly BundledPackage[], { packages }: LockFile): Ingredient[] {
  const ingredients = bundled.map(({ name, version, license, folder }): Ingredient => {
    const locked = packages[folder.slice(folder.indexOf('node_modules/'))]
    if (locked?.integrity === undefined) throw new Error(`package-lock.json has no digest of ${name} ${version}`)
    const known = npmLicenses[name] ?? license
    if (typeof known !== 'string')
      throw new Error(`${name} ${version} states no license: add it to npmLicenses in build/release/ingredients.ts`)
    const purl = `pkg:npm/${name.split('/').map(encodeURIComponent).join('/')}@${version}`
    return { type: 'library', name, version, license: known, purl, hash: hashOfIntegrity(locked.integrity) }
  })
  return [...new Map(ingredients.map((one) => [one.purl, one])).values()] // one may lie in several folders
}

const runtimeException = 'GPL-3.0-or-later WITH GCC-exception-3.1'

const debianLicenses: Readonly<Record<string, string>> = {
  libc6: 'LGPL-2.1-or-later',
  'libgcc-s1': runtimeException,
  'libstdc++6': runtimeException,
  libatomic1: runtimeException,
  'gcc-12-base': runtimeException,
}

/** @throws Error where the license of a package is unknown */
export function debianIngredients(
  packages: readonly DebianPackage[],
  architecture: Architecture,
  versionId: string,
): Ingredient[] {
  return packages.map(({ name, version, sha256 }) => {
    const license = debianLicenses[name]
    if (license === undefined)
      throw new Error(`the license of ${name} is unknown: add it to debianLicenses in build/release/ingredients.ts`)
    const place = `${encodeURIComponent(name)}@${encodeURIComponent(version)}`
    const purl = `pkg:deb/debian/${place}?arch=${architecture}&distro=debian-${versionId}`
    return { type: 'library', name, version, license, purl, hash: { algorithm: 'sha256', hex: sha256 } }
  })
}

/** Libraries in Node's executable that scanners know, by the name that Node gives them, with their licenses. */
const librariesOfNode: Readonly<Record<string, readonly [name: string, license: string]>> = {
  ada: ['ada', 'MIT OR Apache-2.0'],
  ares: ['c-ares', 'MIT'],
  brotli: ['brotli', 'MIT'],
  icu: ['icu', 'Unicode-3.0'],
  llhttp: ['llhttp', 'MIT'],
  nghttp2: ['nghttp2', 'MIT'],
  openssl: ['openssl', 'Apache-2.0'],
  simdjson: ['simdjson', 'MIT OR Apache-2.0'],
  simdutf: ['simdutf', 'MIT OR Apache-2.0'],
  sqlite: ['sqlite', 'blessing'],
  undici: ['undici', 'MIT'],
  uv: ['libuv', 'MIT'],
  v8: ['v8', 'BSD-3-Clause'],
  zlib: ['zlib', 'Zlib'],
  zstd: ['zstd', 'BSD-3-Clause'],
}

/** @param versions those that the same Node reports (`process.versions`) */
export function nodeIngredient(
  { node }: ImagePins,
  architecture: Architecture,
  versions: Readonly<Record<string, string | undefined>>,
): Ingredient {
  const contains = Object.entries(librariesOfNode).flatMap(([key, [name, license]]): Ingredient[] => {
    const version = versions[key]
    return version === undefined || version === ''
      ? []
      : [{ type: 'library', name, version, license, purl: `pkg:generic/${name}@${version}` }]
  })
  return {
    type: 'platform',
    name: 'Node.js',
    version: node.version,
    license: 'MIT',
    purl: `pkg:npm/${npmNameOf(architecture)}@${node.version}`,
    cpe: `cpe:2.3:a:nodejs:node.js:${node.version}:*:*:*:*:*:*:*`,
    hash: hashOfIntegrity(node.integrity[architecture]),
    contains,
  }
}

/** @param goVersion as Go states it: `go1.26.1` */
export function launcherIngredient(goVersion: string): Ingredient {
  const version = goVersion.replace(/^go/, '')
  return {
    type: 'library',
    name: 'Go standard library',
    version,
    license: 'BSD-3-Clause',
    purl: `pkg:golang/stdlib@${version}`,
  }
}

export function fileIngredient(name: string, sha256: string): Ingredient {
  return { type: 'file', name, hash: { algorithm: 'sha256', hex: sha256 } }
}

/** An image, by the digest of its manifest or index. */
export function imageIngredient(repository: string, version: string, digest: string): Ingredient {
  const name = repository.slice(repository.lastIndexOf('/') + 1)
  const purl = `pkg:oci/${name}@${encodeURIComponent(digest)}?repository_url=${encodeURIComponent(repository)}`
  return { type: 'container', name, version, purl, hash: { algorithm: 'sha256', hex: digest.slice('sha256:'.length) } }
}

/** npm's notation: an algorithm and base64. */
function hashOfIntegrity(integrity: string): Hash {
  const [, base64] = /^sha512-([A-Za-z0-9+/]+=*)$/.exec(integrity) ?? []
  if (base64 === undefined) throw new Error(`a digest of npm must be sha512-…, got ${integrity}`)
  return { algorithm: 'sha512', hex: Buffer.from(base64, 'base64').toString('hex') }
}
