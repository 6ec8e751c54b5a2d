import { join } from 'node:path'

/** The repository as the checks see it: the paths of all files, and the text of each. */
export type Repository = { readonly paths: readonly string[]; read(path: string): string }

/** Whether a text names a file or folder: by its path from the root, from the file that names it, or by its end. */
export function nameResolver({ paths }: Repository): (name: string, from: string) => boolean {
  const known = new Set<string>()
  for (const path of paths) {
    const parts = path.split('/')
    for (let start = 0; start < parts.length; start++) known.add(parts.slice(start).join('/'))
    for (let end = 1; end < parts.length; end++) known.add(parts.slice(0, end).join('/'))
  }
  return (name, from) => known.has(name) || known.has(join(from, '..', name))
}
