/**
 * The negative control: an agent that does not wait for its journal to be on disk. A campaign that does not catch it
 * would prove nothing about power cuts.
 */
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Sandbox } from '../sandbox/sandbox.ts'

const repository = join(import.meta.dirname, '..', '..')
const run = promisify(execFile)
const tag = 'no-fsync'

/** The patches to src/host/fs/fsync.ts. */
const patches = [
  ['await file.sync()', "if (kindOf(path) !== 'journal') await file.sync()"],
  ['await folder.sync()', "if (kindOf(path) !== 'agent') await folder.sync()"],
] as const

/** Rolls out the patched agent; the returned function rolls back to the previous one. */
export async function installNoFsyncAgent(box: Sandbox): Promise<() => Promise<void>> {
  const folder = join(repository, 'dist', 'no-fsync')
  rmSync(folder, { recursive: true, force: true })
  cpSync(join(repository, 'src'), join(folder, 'src'), { recursive: true })
  const file = join(folder, 'src', 'host', 'fs', 'fsync.ts')
  let text = readFileSync(file, 'utf8')
  for (const [original, patched] of patches) {
    if (!text.includes(original))
      throw new Error(`src/host/fs/fsync.ts has no "${original}": adapt the patches of the negative control`)
    text = text.replace(original, patched)
  }
  writeFileSync(file, text)
  const env = { ...process.env, ...box.env() }
  const entry = join(folder, 'src', 'daemon', 'main.ts')
  const image = `${env['REGISTRY'] ?? ''}/skyhookd:${tag}`
  await run(process.execPath, [join(repository, 'build', 'image.ts'), '--entry', entry, '--push', image], { env })
  const path = 'jsonpath={.spec.template.spec.containers[0].image}'
  const before = await box.kubectl(['-n', 'skyhook', 'get', 'daemonset', 'skyhookd', '-o', path])
  const use = async (name: string): Promise<void> => {
    await box.kubectl(['-n', 'skyhook', 'set', 'image', '--field-manager=helm', 'daemonset/skyhookd', `agent=${name}`])
    await box.kubectl(['-n', 'skyhook', 'rollout', 'status', 'daemonset/skyhookd', '--timeout=180s'])
  }
  await use(image)
  return async () => await use(before)
}
