/**
 * `make demo`: from nothing to a complete rollout on three real hosts. Exits with 0 only if every node is complete and
 * nothing is left behind. Leaves the sandbox running, to look around and to run the demo again.
 */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { record } from '../test/kit/history.ts'
import { hostOf } from '../test/kit/cluster/host.ts'
import { adminTransport } from '../test/kit/cluster/kube.ts'
import type { Sandbox } from '../test/sandbox/sandbox.ts'
import { watchBoots } from './boots.ts'
import { drawing } from './drawing.ts'
import { type Film, picture } from './picture.ts'
import { runSample } from './play.ts'
import { readySandbox } from './ready-sandbox.ts'
import { samples } from './samples.ts'
import { createScreen, table, type Screen } from './screen.ts'
import { sightsOf, type Rollout } from './sights.ts'
import { summaryOf, type Seen } from './summary.ts'

/** Everything that the demo printed, and every change that it saw in the cluster. */
const logFile = join(import.meta.dirname, '..', 'dist', 'demo.log')

async function main(screen: Screen): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new Error('the demo boots systemd hosts with network namespaces, which needs root: sudo make demo')
  const startedMs = performance.now()
  screen.line('skyhookd demo: a real cluster of three hosts with systemd, kubelet and containerd, all on this machine')
  const box = await readySandbox(screen)
  const { KUBECONFIG = '' } = box.env()
  const api = adminTransport(KUBECONFIG)
  const history = await record(api)
  const watching = new AbortController()
  let ending: readonly string[]
  try {
    const nodes = [...history.now.nodes.keys()].sort()
    const boots = watchBoots(box, nodes, watching.signal)
    const rollouts: Rollout[] = []
    for (const sample of samples) rollouts.push(await runSample({ screen, box, api, history, nodes }, sample))
    const files = await showHosts(screen, box, nodes)
    const views = [...(await history.moments())]
    const films = rollouts.map((rollout) => ({ rollout, sights: sightsOf(views, boots, rollout, nodes) }))
    log(`\nhistory of the rollouts:\n${history.format()}`)
    draw(films, nodes)
    ending = [...summaryOf({ films, boots, nodes, views, files }), '', ...picture(films, nodes)]
  } catch (error) {
    screen.text(`\nhistory of the rollout:\n${history.format()}`)
    throw error
  } finally {
    watching.abort()
    history.stop()
    api.close()
  }
  screen.text(
    `\ndone in ${((performance.now() - startedMs) / 1000).toFixed(1)} s. The sandbox is still up:\n\n${tour(box)}`,
  )
  screen.text(`\n── what was seen (all of it: ${relative(process.cwd(), logFile)})\n\n${ending.join('\n')}`)
}

/** `make pictures`: the rollouts as the README shows them. */
function draw(films: readonly Film[], nodes: readonly string[]): void {
  const folder = process.env['README_PICTURES']
  if (folder === undefined) return
  for (const theme of ['light', 'dark'] as const)
    writeFileSync(join(folder, `rollout-${theme}.svg`), drawing(films, nodes, theme))
}

/** Shows the files of the packages on every host, and those of the agent on the first. Returns how many are there. */
async function showHosts(screen: Screen, box: Sandbox, nodes: readonly string[]): Promise<Seen['files']> {
  const contents: (string | undefined)[] = []
  screen.text('\n── what changed on the hosts\n')
  for (const file of samples.flatMap(({ files }) => files)) {
    for (const node of nodes) {
      const content = await hostOf(box, node).read(file)
      contents.push(content)
      screen.text(`${node}:${file}\n${indented(content ?? '(missing)')}`)
    }
  }
  const files = { expected: contents.length, found: contents.filter((content) => content !== undefined).length }
  const [first] = nodes
  if (first === undefined) return files
  const folders = samples.map(({ file }) => `/var/log/skyhook/${skyhookOf(file)}`)
  const logs = (await hostOf(box, first).exec('find', ...folders, '-name', '*.log')).trim().split('\n')
  const counts = Map.groupBy(logs, (path) => dirname(path))
  for (const [folder, found] of counts) screen.text(`${first}:${folder}  logs of ${found.length} steps`)
  screen.text(`${first}:/var/lib/skyhook/.agent/journal.json  the agent's journal`)
  return files
}

/** A sample's Skyhook has the name of its file. */
const skyhookOf = (file: string): string => file.replace(/\.yaml$/, '')

const indented = (text: string): string =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `    ${line}`)
    .join('\n')

function tour(box: Sandbox): string {
  const folder = relative(process.cwd(), box.folder)
  const prefix = box.name === 'default' ? '' : `SANDBOX=${box.name} `
  const ways = [
    [`. ${folder}/env`, 'kubectl, helm and the registry of the sandbox'],
    ['kubectl get nodes -L skyhook.nvidia.com/status_demo', 'the status of each node'],
    ['kubectl describe node node-1', 'annotations, conditions and Events'],
    [`${prefix}bin/sandbox logs node-1`, 'the log of its agent'],
    [`${prefix}bin/sandbox exec node-1 -- bash`, 'a shell on the host'],
    [`${prefix}make demo`, 'the demo again, without booting'],
    [`${prefix}make sandbox-down`, 'removes every trace'],
  ]
  return table(ways)
    .map((line) => `  ${line}`)
    .join('\n')
}

mkdirSync(dirname(logFile), { recursive: true })
writeFileSync(logFile, '')
const log = (text: string): void => appendFileSync(logFile, `${text}\n`)
const screen = createScreen(process.stdout, () => performance.now(), log)
try {
  await main(screen)
} catch (error) {
  screen.keep()
  screen.text(`\nthe demo failed: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
