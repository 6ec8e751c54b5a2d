/**
 * Lets Node keep what it compiles of the tool: 2 MB that take longer to compile than to run. Imported before the
 * program, because it is about what is loaded afterwards. Nothing depends on it: without the folder, Node compiles.
 */
import { statSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { isAbsolute, join } from 'node:path'

/** What lies there is run, so it must belong to whoever runs it: sudo may leave the HOME of somebody else. */
function isOwn(folder: string): boolean {
  try {
    return statSync(folder).uid === process.geteuid?.()
  } catch {
    return false
  }
}

const { XDG_CACHE_HOME: cache = '', HOME: home = '' } = process.env
// the XDG specification: a relative folder is none
const [owned, folder] = isAbsolute(cache) ? [cache, cache] : [home, join(home, '.cache')]
if (isAbsolute(owned) && isOwn(owned)) enableCompileCache(join(folder, 'kubectl-skyhook'))
