/** Shows rollouts on one screen, once or continuously, and waits for one of them. */
import { getIfExists } from '../../kube/objects.ts'
import type { FleetView } from '../fleet/fleet-view/fleet-view.ts'
import { type Context, defineCommand } from '../base/framework/command.ts'
import { CommandError, notFoundError, usageError, exitCodes, type ExitCode } from '../base/framework/command-error.ts'
import { statusPainter } from '../base/output/painters.ts'
import { envelope, print } from '../base/output/print.ts'
import { wrapText } from '../base/output/wrap.ts'
import { isTransient } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import { sleep } from '../../schemas/clock.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { formatTime } from '../../schemas/time.ts'
import { fleetStatus, type SkyhookStatus } from '../reason/status/fleet-status.ts'
import type { NodeRow } from '../reason/status/node-report.ts'
import { readCompletions, readRollouts } from '../reason/status/read-rollouts.ts'
import { statusLine, statusText } from '../reason/status/status-text.ts'
import { type WaitVerdict, waitVerdict } from '../reason/status/wait-verdict.ts'
import { watchFleet } from '../reason/status/watch-fleet.ts'
import { fromFlag, openSource } from '../bundle/open.ts'

/** Conditions change once every few seconds. */
const waitPollMs = 1_000

export const status = defineCommand({
  name: 'status',
  summary: 'show rollouts: nodes by state, packages, what holds nodes up, the budget, and the pace',
  description:
    'Nodes that need a person come first, with their reasons. "1.0.0 -> 1.1.0" is the installed and the next ' +
    'version. The pace is that of the last completions, and is absent while nothing moves. ' +
    '--wait is about the generation at the time of the call: it fails when the Skyhook is stalled, or is edited. ' +
    'A Skyhook is stalled if it does not continue by itself, for example after the third failed attempt of a stage, ' +
    'or when the registry has not had an image for two minutes. --wait also fails when no node is selected, unless ' +
    '--allow-no-nodes is given.',
  example: 'kubectl skyhook status tuning',
  otherExamples: ['kubectl skyhook status --from support.tar.gz'],
  arguments: { skyhook: { summary: 'name of one Skyhook', isOptional: true, complete: 'skyhooks' } },
  flags: {
    watch: {
      type: 'boolean',
      short: 'w',
      summary: 'keep the screen current; without a terminal, a line for each change',
    },
    wait: { type: 'boolean', summary: 'wait until all nodes of the Skyhook are complete' },
    timeout: {
      type: 'duration',
      placeholder: 'DURATION',
      summary: 'longest wait of --wait; by default no limit',
    },
    from: fromFlag,
    allowNoNodes: {
      type: 'boolean',
      summary: '--wait: a Skyhook that selects no node is complete, as for a pool that is scaled to zero',
    },
  },
  exitCodes: {
    [exitCodes.notFound]: 'the Skyhook does not exist, or was deleted meanwhile, or no agents are installed',
    [exitCodes.timeout]: '--wait: not complete within --timeout',
    [exitCodes.stalled]: '--wait: the Skyhook is stalled and will not complete by itself; its message is on stderr',
    [exitCodes.noNodes]: '--wait without --allow-no-nodes: the Skyhook selects no node',
    [exitCodes.interrupted]: 'interrupted by ctrl-C, the usual end of --watch',
  },
  formats: ['table', 'json', 'yaml'],
  async run(context, { arguments: { skyhook: name }, flags }) {
    if (flags.wait && name === undefined) throw usageError('--wait needs the name of a Skyhook')
    if (flags.timeout !== undefined && !flags.wait) throw usageError('--timeout needs --wait')
    if (flags.allowNoNodes && !flags.wait) throw usageError('--allow-no-nodes needs --wait')
    if (flags.wait && flags.watch) throw usageError('--wait and --watch exclude each other')
    if (flags.from !== undefined && (flags.wait || flags.watch))
      throw usageError('a support archive does not change: --from goes with neither --watch nor --wait')
    if (flags.wait && name !== undefined)
      return await waitForSkyhook(context, (await context.connect()).transport, name, flags)

    const { transport, namespace, clock } = await openSource(context, flags.from)
    const { random, signal } = context
    const [fleet, completions] = await Promise.all([
      readRollouts(transport, { namespace, clock, signal }),
      readCompletions(transport, signal),
    ])
    const shownIn = (view: FleetView<NodeRow>): readonly SkyhookStatus[] => {
      const found = fleetStatus(view, completions, name)
      if (!found.known) throw new CommandError(exitCodes.refused, found.why)
      return found.value
    }
    const shown = shownIn(fleet)
    if (name !== undefined && shown.length === 0)
      throw notFoundError(`there is no Skyhook ${name}`, 'kubectl get skyhooks')
    if (flags.watch) {
      const draw = drawTo(context, shownIn)
      return await watchFleet({ transport, clock, random, signal, first: fleet, draw })
    }
    const document = envelope('SkyhookStatus', shown)
    const lines = (block: string): string => block.trimEnd()
    await print(context, { rows: [statusText(shown, fleet.takenAtMs)], document, lines, paint: statusPainter })
    return exitCodes.ok
  },
})

/** On a terminal, draws the whole screen again. Elsewhere, each change of a Skyhook is a line. */
function drawTo(
  { stdout }: Context,
  shownIn: (view: FleetView<NodeRow>) => readonly SkyhookStatus[],
): (view: FleetView<NodeRow>) => void {
  const lines = new Map<string, string>()
  return (view) => {
    const shown = shownIn(view)
    if (stdout.isTerminal)
      return stdout.screen(wrapText(statusText(shown, view.takenAtMs), stdout.columns()), statusPainter)
    for (const one of shown) {
      const line = statusLine(one)
      if (lines.get(one.name) === line) continue
      lines.set(one.name, line)
      stdout.write(`${formatTime(view.takenAtMs)} ${line}\n`)
    }
  }
}

async function waitForSkyhook(
  { clock, signal, stdout, stderr }: Context,
  transport: KubeTransport,
  name: string,
  { timeout: timeoutMs, allowNoNodes }: { readonly timeout: number | undefined; readonly allowNoNodes: boolean },
): Promise<ExitCode> {
  const endMs = timeoutMs === undefined ? Infinity : clock.monotonicMs() + timeoutMs
  const read = async (): Promise<Skyhook | undefined> =>
    await getIfExists<Skyhook>(transport, `${skyhooksPath}/${name}`, { signal })
  const first = await read()
  if (first === undefined) throw notFoundError(`there is no Skyhook ${name}`, 'kubectl get skyhooks')
  const { uid, generation = 0 } = first.metadata
  for (let current: Skyhook | undefined = first; ; ) {
    const found = waitVerdict(current, { uid, generation })
    if (found.verdict === 'complete') {
      stdout.write(`Skyhook ${name} is complete\n`)
      return exitCodes.ok
    }
    if (found.verdict === 'no-nodes' && allowNoNodes) {
      stdout.write(`Skyhook ${name} is complete: it selects no node\n`)
      return exitCodes.ok
    }
    if (found.verdict !== 'waiting') throw endOf(name, generation, found)
    const restMs = endMs - clock.monotonicMs()
    if (restMs <= 0)
      throw new CommandError(exitCodes.timeout, `Skyhook ${name} is not complete`, `kubectl skyhook explain ${name}`)
    await sleep(clock, Math.min(waitPollMs, restMs), signal)
    try {
      current = await read()
    } catch (error) {
      if (!isTransient(error)) throw error
      stderr.write(`the API server does not answer, retrying\n`)
    }
  }
}

function endOf(
  name: string,
  generation: number,
  found: Exclude<WaitVerdict, { verdict: 'complete' | 'waiting' }>,
): CommandError {
  switch (found.verdict) {
    case 'gone':
      return notFoundError(`Skyhook ${name} was deleted`)
    case 'no-nodes':
      return new CommandError(
        exitCodes.noNodes,
        `Skyhook ${name} selects no node`,
        'correct spec.nodeSelectors, or wait with --allow-no-nodes if the pool may be empty',
      )
    case 'superseded':
      return new CommandError(
        exitCodes.failed,
        `Skyhook ${name} was edited: it has generation ${found.generation}, the wait is for ${generation}`,
        'wait for the current generation',
      )
    case 'stalled':
      return new CommandError(
        exitCodes.stalled,
        `Skyhook ${name} is stalled: ${found.message}`,
        `kubectl skyhook explain ${name}`,
      )
  }
}
