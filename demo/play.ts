/** Plays one sample: applies it, shows the rollout live, and checks its end. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubernetesNode } from '../src/schemas/kubernetes.ts'
import type { Skyhook } from '../src/schemas/skyhook.ts'
import { nodeStateKey } from '../src/schemas/annotations.ts'
import type { KubeTransport } from '../src/kube/transport.ts'
import { appliedHash } from '../src/stages/model/package-inputs.ts'
import type { History } from '../test/kit/history.ts'
import { patch, paths } from '../test/kit/cluster/kube.ts'
import type { View } from '../test/kit/cluster/moments.ts'
import { publishedState } from '../test/kit/cluster/skyhooks.ts'
import { overBudget, slotsOf } from '../test/kit/cluster/slots.ts'
import type { Sandbox } from '../test/sandbox/sandbox.ts'
import { followCommand } from './long-command.ts'
import { cellsOf, changedLines, podsOf, rowsOf, shopNamespace, shopPods, type Row } from './rows.ts'
import { runtimeRequiredTaint, shop, type Sample } from './samples.ts'
import { table, type Screen } from './screen.ts'
import type { Rollout } from './sights.ts'

export type DemoContext = {
  readonly screen: Screen
  readonly box: Sandbox
  readonly api: KubeTransport
  readonly history: History
  /** The nodes of the sandbox. */
  readonly nodes: readonly string[]
}

const drawEveryMs = 100
const skyhooksFolder = join(import.meta.dirname, '..', 'test', 'fixtures', 'skyhooks')

/** Throws unless the rollout ends as the sample says. */
export async function runSample(context: DemoContext, sample: Sample): Promise<Rollout> {
  const { screen, box, api, history, nodes } = context
  const manifest = readFileSync(join(skyhooksFolder, sample.file), 'utf8').replaceAll(
    'REGISTRY',
    box.env()['REGISTRY'] ?? '',
  )
  const { metadata, spec } = parse(manifest) as Skyhook
  const skyhook = metadata.name
  screen.text(`\n── ${sample.file}: ${sample.title}\n`)
  for (const [folder, name] of sample.packages) {
    await box.must(['push', join(import.meta.dirname, '..', 'test', 'fixtures', 'packages', folder), name])
    screen.line(`pushed the package ${name} to the registry`)
  }
  if (sample.shop) await openShop(context)
  await Promise.all(nodes.map((node) => patch(api, `${paths.nodes}/${node}`, { metadata: { labels: sample.labels } })))

  const following = new AbortController()
  followSlots(context, skyhook, following.signal)
  followAgents(context, skyhook, following.signal)
  const showing = show(context, skyhook, following.signal)
  const booted = bootIds(context)
  const applied = appliedHash(spec)
  const startedMs = Date.now()
  let endedMs = startedMs
  try {
    const wasThere = nodes.some((node) => publishedState(history.now.nodes.get(node), skyhook).stateText !== undefined)
    if (!wasThere && sample.taint) await taintLast(context)
    screen.line(`$ kubectl apply -f ${sample.file}`)
    await box.kubectl(['apply', '-f', '-'], manifest)
    if (wasThere) await startOver(context, sample, skyhook, 'the Skyhook is complete from an earlier run')
    const slots = await finish(context, sample, skyhook, applied)
    if (slots === 0) {
      await startOver(context, sample, skyhook, 'the hosts know the Skyhook from an earlier run')
      await finish(context, sample, skyhook, applied)
    }
    const joining = sample.taint ? 1 : 0 // the new node has a budget of its own
    await history.never(`more than ${sample.budget} slots held`, overBudget(skyhook, sample.budget, joining))
    endedMs = Date.now() // every change until the end has arrived
    await sleep(2 * drawEveryMs) // until the followers have printed everything
  } finally {
    following.abort()
    await showing
  }
  const proof = sample.reboots ? assertRebooted(context, booted) : ''
  const atMost = `at most ${sample.budget}${sample.taint ? ' in service' : ''} at a time`
  screen.line(`complete on ${nodes.length} nodes, ${atMost}, no slot held, no node cordoned${proof}`)
  return { skyhook, budget: sample.budget, startedMs, endedMs }
}

/** Ordinary pods, one on each node. */
async function openShop({ screen, box, history, nodes }: DemoContext): Promise<void> {
  await box.kubectl(['apply', '-f', '-'], shop)
  const isOpen = (view: View): boolean =>
    shopPods(view).filter(({ status }) =>
      status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
    ).length >= 3
  await history.eventually('three pods are Ready', isOpen, 60_000)
  const busy = new Set(shopPods(history.now).map(({ spec }) => spec?.nodeName))
  screen.line(
    `three ordinary pods run in the namespace ${shopNamespace}, on ${busy.size} of ${nodes.length} nodes; ` +
      'one must always be available',
  )
}

async function taintLast({ screen, api, nodes }: DemoContext): Promise<void> {
  const node = nodes.at(-1) ?? ''
  const { key, value, effect } = runtimeRequiredTaint
  screen.line(`$ kubectl taint node ${node} ${key}=${value}:${effect}`)
  const { spec } = await api.json<KubernetesNode>('GET', `${paths.nodes}/${node}`)
  const others = (spec?.taints ?? []).filter((taint) => taint.key !== key)
  await patch(api, `${paths.nodes}/${node}`, { spec: { taints: [...others, runtimeRequiredTaint] } })
}

const bootIds = ({ history, nodes }: DemoContext): Map<string, string | undefined> =>
  new Map(nodes.map((node) => [node, history.now.nodes.get(node)?.status?.nodeInfo?.bootID]))

/** Proves by the kernel's boot ids that every host booted. */
function assertRebooted(context: DemoContext, before: ReadonlyMap<string, string | undefined>): string {
  const same = [...bootIds(context)].filter(([node, bootId]) => bootId === undefined || bootId === before.get(node))
  if (same.length > 0) throw new Error(`${same.map(([node]) => node).join(', ')} did not boot`)
  return `, every boot id has changed`
}

/** Resets the Skyhook as an administrator does: the nodes forget it and start over. */
async function startOver(context: DemoContext, sample: Sample, skyhook: string, why: string): Promise<void> {
  const { screen, api, history, nodes } = context
  screen.line(`${why}; resetting it on all nodes:`)
  screen.line(`$ kubectl annotate nodes ${nodes.join(' ')} ${nodeStateKey(skyhook)}-`)
  const body = { metadata: { annotations: { [nodeStateKey(skyhook)]: null } } }
  const reset = await Promise.all(nodes.map((node) => patch<KubernetesNode>(api, `${paths.nodes}/${node}`, body)))
  const versionOf = ({ metadata }: KubernetesNode): number => Number(metadata.resourceVersion)
  await history.eventually('the annotations are removed', (view) =>
    reset.every((node) => versionOf(view.nodes.get(node.metadata.name) ?? node) >= versionOf(node)),
  )
  if (sample.taint) await taintLast(context)
}

/** Waits for completion and returns how many slots were acquired on the way. */
async function finish(
  { history, nodes }: DemoContext,
  sample: Sample,
  skyhook: string,
  applied: string,
): Promise<number> {
  const taken = new Set<string>()
  const note = (view: View): void => {
    for (const { uid } of slotsOf(view, skyhook)) taken.add(uid)
  }
  const isComplete = (view: View): boolean =>
    nodes.every((node) => {
      const { status, stateText, companion } = publishedState(view.nodes.get(node), skyhook)
      return status === 'complete' && stateText !== undefined && companion?.applied === applied
    })
  const isClean = (view: View): boolean =>
    slotsOf(view, skyhook).length === 0 && nodes.every((node) => isInService(view.nodes.get(node)))
  await history.eventually(
    `complete on ${nodes.join(', ')}, with no slot held and no node cordoned`,
    (view) => {
      note(view)
      return isComplete(view) && isClean(view)
    },
    sample.withinMs * Number(process.env['SANDBOX_PATIENCE'] ?? 1),
  )
  return taken.size
}

function isInService(node: KubernetesNode | undefined): boolean {
  const { unschedulable, taints = [] } = node?.spec ?? {}
  return unschedulable !== true && !taints.some(({ key }) => key === runtimeRequiredTaint.key)
}

/** The table on a terminal, and a line for each change elsewhere. */
async function show({ screen, history, nodes }: DemoContext, skyhook: string, signal: AbortSignal): Promise<void> {
  let rows: readonly Row[] = []
  let pods = new Set(podsOf(history.now))
  for (;;) {
    const next = rowsOf(history.now, skyhook, nodes)
    if (screen.isLive) screen.draw(['', ...table(cellsOf(next))])
    else for (const line of changedLines(rows, next)) screen.line(line)
    rows = next
    const nextPods = podsOf(history.now)
    for (const line of nextPods) if (!pods.has(line)) screen.line(line)
    pods = new Set(nextPods)
    if (signal.aborted) break
    await sleep(drawEveryMs, undefined, { signal }).catch(() => undefined)
  }
  screen.keep()
}

/** The Leases as kubectl shows them: the column HOLDER names the node that holds a slot. */
function followSlots({ screen, box }: DemoContext, skyhook: string, signal: AbortSignal): void {
  const selector = `skyhook.nvidia.com/name=${skyhook},skyhook.nvidia.com/slot-kind!=ledger`
  screen.line(`$ kubectl get leases -n skyhook -l ${selector} --watch`)
  const command = () =>
    ['kubectl', 'get', 'leases', '-n', 'skyhook', '-l', selector, '--watch', '--output-watch-events'] as const
  followCommand(command, box.env(), (line) => screen.line(`  ${line}`), signal)
}

/** Completed stages from the agents' logs: Nodes show progress at most once a second. */
function followAgents({ screen, box, history, nodes }: DemoContext, skyhook: string, signal: AbortSignal): void {
  const printLogLine = (node: string, text: string): void => {
    const entry = parseLog(text)
    if (entry?.['skyhook'] !== skyhook) return
    const about = [entry['package'], entry['stage'], entry['detail']]
      .filter((word) => typeof word === 'string')
      .join(' ')
    screen.line(`${node}  agent: ${String(entry['message'])}${about === '' ? '' : `: ${about}`}`)
  }
  const podOn = (node: string): string =>
    [...history.now.pods.values()].find(
      ({ metadata, spec }) => metadata.namespace === 'skyhook' && spec?.nodeName === node,
    )?.metadata.name ?? ''
  for (const node of nodes) {
    const command = () => ['kubectl', 'logs', '-n', 'skyhook', podOn(node), '-f', '--since=1s'] as const
    followCommand(command, box.env(), (text) => printLogLine(node, text), signal)
  }
}

function parseLog(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined // a message of kubectl
  }
}
