/** The cluster that the demo runs on: the running sandbox, or a new one, with the agent of the working tree. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sandbox, type Sandbox } from '../test/sandbox/sandbox.ts'
import { runLongCommand } from './long-command.ts'
import type { Screen } from './screen.ts'

const repository = join(import.meta.dirname, '..')
const program = 'bin/sandbox'

export async function readySandbox(screen: Screen): Promise<Sandbox> {
  const box = sandbox(process.env['SANDBOX'] ?? 'default')
  const isThere = existsSync(join(box.folder, 'env'))
  if (isThere && !(await answers(box))) {
    screen.line('the existing sandbox does not answer (was the machine restarted?): removing it')
    await runLongCommand(screen, 'removing the old sandbox', [program, 'down'])
  }
  if (!existsSync(join(box.folder, 'env'))) {
    screen.line('booting a control plane, a registry and three hosts')
    await runLongCommand(screen, 'booting the sandbox', [program, 'up', '3'])
    return box
  }
  screen.line(`the sandbox is already up (${box.folder})`)
  const installed = await installedAt(box)
  if (installed === undefined) screen.line('the sandbox has no agent yet: building and installing it')
  else if (installed < newestSource())
    screen.line('sources have changed since the agent was built: rolling out a new one')
  else return box
  await runLongCommand(screen, 'installing the agent', [program, 'install'])
  return box
}

async function answers(box: Sandbox): Promise<boolean> {
  try {
    await box.kubectl(['get', '--raw', '/readyz', '--request-timeout=5s'])
    return true
  } catch {
    return false
  }
}

/** Build time of the installed agent's image in ms, from its tag. */
async function installedAt(box: Sandbox): Promise<number | undefined> {
  const image = ['-o', 'jsonpath={.spec.template.spec.containers[0].image}']
  const found = await box.kubectl(['-n', 'skyhook', 'get', 'daemonset', 'skyhookd', '--ignore-not-found', ...image])
  const seconds = /:dev-(\d+)$/.exec(found)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}

/** Modification time of the newest file that the agent's image or chart is made from. */
function newestSource(): number {
  const newest = (folder: string): number =>
    Math.max(
      0,
      ...readdirSync(folder, { withFileTypes: true, recursive: true })
        .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts') && !entry.name.endsWith('.md'))
        .map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs),
    )
  return Math.max(...['src', 'build', 'chart'].map((folder) => newest(join(repository, folder))))
}
