/**
 * Node.js runs the sources as they are, without their types. It refuses a few forms that TypeScript allows, and a file
 * of tests that cannot be loaded has no test that fails.
 */
import { stripTypeScriptTypes } from 'node:module'
import { messageOf } from '../../src/schemas/json.ts'
import type { Repository } from './repository.ts'

export function unloadableFiles(repository: Repository): string[] {
  return repository.paths
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => {
      try {
        stripTypeScriptTypes(repository.read(path))
        return []
      } catch (error) {
        return [`${path}: Node.js cannot load it: ${messageOf(error)}`]
      }
    })
}
