/** Plays one sample: applies it, shows the rollout while it happens, and checks how it ended. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { nodeStateKey } from '../../src/schemas/annotations.ts'
import { appliedHash } from '../../src/stages/applied.ts'
import type { Transport } from '../../src/kube/transport.ts'
import type { History } from '../e2e/history.ts'
import { patch, paths } from '../e2e/kube.ts'
import type { View } from '../e2e/moments.ts'
import { shown } from '../e2e/skyhooks.ts'
import { overBudget, slotsOf } from '../e2e/slots.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { followCommand } from './long-command.ts'
import { cellsOf, news, rowsOf, type Row } from './rows.ts'
import type { Sample } from './samples.ts'
import { table, type Screen } from './screen.ts'

export type Stage = {
  readonly screen: Screen
  readonly box: Sandbox
  readonly api: Transport
  readonly history: History
  /** The nodes of the sandbox. */
  readonly nodes: readonly string[]
}

const drawEveryMs = 100
const skyhooksFolder = join(import.meta.dirname, '..', 'fixtures', 'skyhooks')

export async function play(stage: Stage, sample: Sample): Promise<void> {
  const { screen, box, api, history, nodes } = stage
  const manifest = readFileSync(join(skyhooksFolder, sample.file), 'utf8').replaceAll('REGISTRY', box.env()['REGISTRY'] ?? '')
  const { metadata, spec } = parse(manifest) as Skyhook
  const skyhook = metadata.name
  screen.text(`\n── ${sample.file}: ${sample.title}\n`)
  for (const [folder, name] of sample.packages) {
    await box.must(['push', join(import.meta.dirname, '..', 'fixtures', 'packages', folder), name])
    screen.line(`pushed the package ${name} to the registry`)
  }
  await Promise.all(nodes.map((node) => patch(api, `${paths.nodes}/${node}`, { metadata: { labels: sample.labels } })))

  const following = new AbortController()
  followSlots(stage, following.signal)
  followAgents(stage, skyhook, following.signal)
  const showing = show(stage, skyhook, following.signal)
  try {
    const wasThere = nodes.some((node) => shown(history.now.nodes.get(node), skyhook).stateText !== undefined)
    screen.line(`$ kubectl apply -f ${sample.file}`)
    await box.kubectl(['apply', '-f', '-'], manifest)
    if (wasThere) await startOver(stage, skyhook, 'it is complete from an earlier run')
    const slots = await finish(stage, sample, skyhook, appliedHash(spec))
    if (slots === 0) {
      await startOver(stage, skyhook, 'the hosts remember it from an earlier run')
      await finish(stage, sample, skyhook, appliedHash(spec))
    }
    await history.never(`more than ${sample.budget} slots held`, overBudget(skyhook, sample.budget))
    await sleep(2 * drawEveryMs) // what followers have still to say
  } finally {
    following.abort()
    await showing
  }
  screen.line(`complete on ${nodes.length} nodes, never more than ${sample.budget} at work, no slot held, no node cordoned`)
}

/** A person's reset: the nodes forget the Skyhook and work on it as on the first day. */
async function startOver({ screen, api, history, nodes }: Stage, skyhook: string, why: string): Promise<void> {
  screen.line(`${why}, so the nodes are told to forget it:`)
  screen.line(`$ kubectl annotate nodes ${nodes.join(' ')} ${nodeStateKey(skyhook)}-`)
  const body = { metadata: { annotations: { [nodeStateKey(skyhook)]: null } } }
  const reset = await Promise.all(nodes.map((node) => patch<KubernetesNode>(api, `${paths.nodes}/${node}`, body)))
  const versionOf = ({ metadata }: KubernetesNode): number => Number(metadata.resourceVersion)
  await history.eventually('seen that the annotations are gone', (view) =>
    reset.every((node) => versionOf(view.nodes.get(node.metadata.name) ?? node) >= versionOf(node)),
  )
}

/** Waits for the end; how many slots were taken on the way. */
async function finish({ history, nodes }: Stage, sample: Sample, skyhook: string, applied: string): Promise<number> {
  const taken = new Set<string>()
  const note = (view: View): void => {
    for (const { uid } of slotsOf(view, skyhook)) taken.add(uid)
  }
  const isComplete = (view: View): boolean =>
    nodes.every((node) => {
      const { status, stateText, companion } = shown(view.nodes.get(node), skyhook)
      return status === 'complete' && stateText !== undefined && companion?.applied === applied
    })
  const isClean = (view: View): boolean =>
    slotsOf(view, skyhook).length === 0 && nodes.every((node) => view.nodes.get(node)?.spec?.unschedulable !== true)
  await history.eventually(
    `complete on ${nodes.join(', ')}, with no slot held and no node cordoned`,
    (view) => {
      note(view)
      return isComplete(view) && isClean(view)
    },
    sample.withinMs,
  )
  return taken.size
}

/** The table on a terminal, and a line for each change elsewhere. */
async function show({ screen, history, nodes }: Stage, skyhook: string, signal: AbortSignal): Promise<void> {
  let rows: readonly Row[] = []
  for (;;) {
    const next = rowsOf(history.now, skyhook, nodes)
    if (screen.isLive) screen.draw(['', ...table(cellsOf(next))])
    else for (const line of news(rows, next)) screen.line(line)
    rows = next
    if (signal.aborted) break
    await sleep(drawEveryMs, undefined, { signal }).catch(() => undefined)
  }
  screen.keep()
}

/** The Leases as kubectl shows them: who has a slot stands in the column HOLDER. */
function followSlots({ screen, box }: Stage, signal: AbortSignal): void {
  screen.line('$ kubectl get leases -n skyhook --watch')
  const command = ['kubectl', 'get', 'leases', '-n', 'skyhook', '--watch', '--output-watch-events'] as const
  followCommand(command, box.env(), (line) => screen.line(`  ${line}`), signal)
}

/** Ends of stages as the agents log them: Nodes show progress once a second at most. */
function followAgents({ screen, box }: Stage, skyhook: string, signal: AbortSignal): void {
  const command = [
    'kubectl',
    'logs',
    '-n',
    'skyhook',
    '-l',
    'app.kubernetes.io/name=skyhookd',
    '-f',
    '--since=1s',
    '--max-log-requests=20',
  ] as const
  followCommand(
    command,
    box.env(),
    (text) => {
      const said = parseLog(text)
      if (said?.['skyhook'] !== skyhook) return
      const about = [said['package'], said['stage'], said['detail']].filter((word) => typeof word === 'string').join(' ')
      screen.line(`${String(said['node'])}  agent: ${String(said['message'])}${about === '' ? '' : `: ${about}`}`)
    },
    signal,
  )
}

function parseLog(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined // kubectl's own words
  }
}
