/**
 * `make demo`: from nothing to a finished rollout on three real hosts. Ends with 0 only when every node is complete and nothing is left
 * behind. Leaves the sandbox running, so that one can look around and run it again.
 */
import { relative } from 'node:path'
import { record } from '../e2e/history.ts'
import { hostOf } from '../e2e/host.ts'
import { adminTransport } from '../e2e/kube.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { play } from './play.ts'
import { readySandbox } from './ready-sandbox.ts'
import { samples } from './samples.ts'
import { createScreen, table, type Screen } from './screen.ts'

async function main(screen: Screen): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error('the demo boots systemd hosts with network namespaces, which needs root: sudo make demo')
  const startedMs = performance.now()
  screen.line('skyhookd demo: a real cluster of three hosts with systemd, kubelet and containerd, all on this machine')
  const box = await readySandbox(screen)
  const { KUBECONFIG = '' } = box.env()
  const api = adminTransport(KUBECONFIG)
  const history = await record(api)
  try {
    const nodes = [...history.now.nodes.keys()].sort()
    for (const sample of samples) await play({ screen, box, api, history, nodes }, sample)
    await showHosts(screen, box, nodes)
  } catch (error) {
    screen.text(`\nwhat happened, in order:\n${history.tell()}`)
    throw error
  } finally {
    history.stop()
    api.close()
  }
  screen.text(`\ndone in ${((performance.now() - startedMs) / 1000).toFixed(1)} s. The sandbox is still up:\n\n${tour(box)}`)
}

/** What the packages left on every host, and what the agent left on the first. */
async function showHosts(screen: Screen, box: Sandbox, nodes: readonly string[]): Promise<void> {
  screen.text('\n── what changed on the hosts\n')
  for (const file of samples.flatMap(({ files }) => files)) {
    for (const node of nodes) screen.text(`${node}:${file}\n${indented((await hostOf(box, node).read(file)) ?? '(missing)')}`)
  }
  const [first] = nodes
  if (first === undefined) return
  for (const folder of ['/var/log/skyhook', '/var/lib/skyhook']) {
    const depth = folder === '/var/lib/skyhook' ? ['-maxdepth', '2'] : ['-type', 'f']
    const found = await hostOf(box, first).exec('find', folder, '-mindepth', '1', ...depth, '-printf', '%P %s\\n')
    const paths = found
      .trim()
      .split('\n')
      .map((line) => line.split(' ')) // no path of ours has a blank
    const shown = depth[0] === '-type' ? paths.map(([path = '', size]) => `${path}  ${size} bytes`) : paths.map(([path = '']) => path)
    screen.text(`${first}:${folder}\n${indented(shown.sort().join('\n'))}`)
  }
}

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
    ['kubectl get nodes -L skyhook.nvidia.com/status_demo', 'where each node stands'],
    ['kubectl describe node node-1', 'annotations, conditions and Events'],
    [`${prefix}bin/sandbox logs node-1`, 'the agent on it'],
    [`${prefix}bin/sandbox exec node-1 -- bash`, 'on the host'],
    [`${prefix}make demo`, 'again, without booting anything'],
    [`${prefix}make sandbox-down`, 'removes every trace'],
  ]
  return table(ways)
    .map((line) => `  ${line}`)
    .join('\n')
}

const screen = createScreen(process.stdout, () => performance.now())
try {
  await main(screen)
} catch (error) {
  screen.keep()
  screen.text(`\nthe demo failed: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
