import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { valid } from 'semver'
import { parse } from 'yaml'

/** The places that state a version, by name. */
export type StatedVersions = Readonly<Record<string, string>>

/** What the files of a working tree say. */
export function statedVersions(repository: string): StatedVersions {
  const read = (path: string): string => readFileSync(join(repository, path), 'utf8')
  const versionIn = (path: string): string => (JSON.parse(read(path)) as { version: string }).version
  const chart = parse(read('chart/Chart.yaml')) as { version: string; appVersion: string }
  return {
    'version in package.json': versionIn('package.json'),
    'version in package-lock.json': versionIn('package-lock.json'),
    'version in chart/Chart.yaml': chart.version,
    'appVersion in chart/Chart.yaml': chart.appVersion,
  }
}

/** @throws Error unless the version is semantic and every place states it */
export function checkVersion(version: string, stated: StatedVersions): void {
  if (valid(version) !== version) throw new Error(`VERSION must be a semantic version such as 0.1.0, got "${version}"`)
  // a tag of an image cannot have it, and chart and image must have one name
  if (version.includes('+')) throw new Error(`VERSION must not have build metadata ("+…"), got "${version}"`)
  const others = Object.entries(stated).filter(([, found]) => found !== version)
  if (others.length === 0) return
  const list = others.map(([place, found]) => `${place} is ${found}`).join(', ')
  throw new Error(`VERSION is ${version}, but ${list}: set ${version} in these files, run "make generate" and commit`)
}
