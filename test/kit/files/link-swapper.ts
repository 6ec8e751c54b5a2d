/**
 * Another user of a host: in folders of its own it exchanges whatever appears for links, as fast as it can, until a
 * file tells it to stop. Arguments: the file, what the links lead to (a file and a folder), and the folders. It prints
 * a line when it starts, and at the end how often it exchanged something.
 */
import { existsSync, lstatSync, readdirSync, renameSync, rmSync, symlinkSync, linkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const [stopFile = '', file = '', folder = '', ...ownFolders] = process.argv.slice(2)
let exchanged = 0
let round = 0

/** Races are lost all the time: that is no error here. */
function attempt(act: () => void): boolean {
  try {
    act()
    return true
  } catch {
    return false
  }
}

/** What lies at the path gives way to a link for a moment, then comes back. A temporary file does not come back. */
function exchange(path: string): void {
  const isFolder = lstatSync(path).isDirectory()
  const isTemporary = path.endsWith('.tmp')
  const aside = `${path}.aside`
  renameSync(path, aside)
  const target = isFolder ? folder : file
  const isDone =
    round % 7 === 0 && !isFolder
      ? attempt(() => linkSync(file, path))
      : attempt(() => symlinkSync(relative(dirname(path), target), path))
  if (isDone) exchanged++
  if (isTemporary) return
  const until = performance.now() + (round % 3)
  while (performance.now() < until);
  attempt(() => rmSync(path, { force: true }))
  attempt(() => renameSync(aside, path))
}

process.stdout.write('started\n')
while (!existsSync(stopFile)) {
  round++
  for (const own of ownFolders) {
    let names: string[] = []
    attempt(() => void (names = readdirSync(own)))
    for (const name of names) {
      if (name.endsWith('.aside')) attempt(() => rmSync(join(own, name), { recursive: true, force: true }))
      else if (name.endsWith('.tmp') || round % 5 === 0) attempt(() => exchange(join(own, name)))
    }
  }
}
process.stdout.write(String(exchanged))
