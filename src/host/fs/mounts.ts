/** How the host mounted a folder. */
import type { HostRoot } from './host-root.ts'

/** The init process's, as the host's own `/proc` shows it: an agent in a container has other mounts. */
const mountInfoPath = '/proc/1/mountinfo'

/**
 * A sentence when files of this folder cannot be executed because of how it is mounted; undefined when they can, or
 * when that is unknown.
 */
export async function whyMountedNoexec(root: HostRoot, folder: string): Promise<string | undefined> {
  // if it is unreadable, the step itself reports the failure
  const text = await root.readFile(mountInfoPath).catch(() => undefined)
  if (text === undefined) return undefined
  const mount = mountOf(text.toString(), await root.realPath(folder))
  if (mount?.options.includes('noexec') !== true) return undefined
  return (
    `${folder} is on ${mount.point}, which the host mounts noexec: no step can be executed there. ` +
    "Mount it with exec, or set the chart's copyDirRoot to a folder where programs may run"
  )
}

type Mount = { readonly point: string; readonly options: readonly string[] }

/**
 * The mount that a path lies on: the longest mount point above it, and of several on one point the last, which hides
 * the others.
 */
export function mountOf(text: string, path: string): Mount | undefined {
  let found: Mount | undefined
  for (const line of text.split('\n')) {
    const [, , , , escapedPoint, options] = line.split(' ')
    if (escapedPoint === undefined || options === undefined) continue
    const point = escapedPoint.replaceAll(/\\(\d{3})/g, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 8)),
    )
    const isAbove = point === '/' || path === point || path.startsWith(`${point}/`)
    if (isAbove && point.length >= (found?.point.length ?? 0)) found = { point, options: options.split(',') }
  }
  return found
}
