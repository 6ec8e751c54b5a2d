import type { Repository } from '../../../build/checks/repository.ts'

/** A repository of these files: path → text. */
export function repositoryOf(files: Readonly<Record<string, string>>): Repository {
  return { paths: Object.keys(files), read: (path) => files[path] ?? '' }
}
