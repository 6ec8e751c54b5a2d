/**
 * Lets Node cache the compiled code of the tool: 2 MB that take longer to compile than to run. Imported before the
 * program, because it covers only what is loaded afterwards. Optional: without the folder, Node compiles.
 */
import { statSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { isAbsolute, join } from 'node:path'

/** Its files are executed, so it must belong to the user: sudo may leave the HOME of somebody else. */
function isOwn(folder: string): boolean {
  try {
    return statSync(folder).uid === process.geteuid?.()
  } catch {
    return false
  }
}

const { XDG_CACHE_HOME: cache = '', HOME: home = '' } = process.env
// the XDG specification: a relative folder is ignored
const [owned, folder] = isAbsolute(cache) ? [cache, cache] : [home, join(home, '.cache')]
if (isAbsolute(owned) && isOwn(owned)) enableCompileCache(join(folder, 'kubectl-skyhook'))
