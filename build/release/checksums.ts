import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** Every file below a folder, as paths from there, sorted. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort()
}

export function sha256OfFile(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

/** For `sha256sum --check`. */
export function checksums(folder: string): string {
  return filesBelow(folder)
    .map((path) => `${sha256OfFile(join(folder, path))}  ${path}\n`)
    .join('')
}
