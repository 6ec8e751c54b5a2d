import { homedir } from 'node:os'
import { join } from 'node:path'

/** Keeps downloads and slow results between builds; shared with the sandbox. Safe to remove. */
export function cacheFolder(...parts: readonly string[]): string {
  const root =
    process.env['SKYHOOKD_CACHE'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'skyhookd')
  return join(root, ...parts)
}
