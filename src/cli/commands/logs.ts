/** Commands that read the logs of agents: logs, package logs, history. */
import { type Context, defineCommand } from '../base/framework/command.ts'
import { usageError, exitCodes } from '../base/framework/command-error.ts'
import {
  logArguments,
  logExitCodes,
  logFlags,
  followSteps,
  type LoggedLine,
  readNode,
  openChosen,
  openLogs,
  extentNote,
  type OpenedLogs,
  readSteps,
} from '../fleet/agent-log/node-log.ts'
import {
  hostFolderOf,
  inStepOrder,
  itemOf,
  linesFrom,
  type StepSelection,
  stepStages,
  textOf,
  type PastStep,
  pastSteps,
} from '../fleet/agent-log/step-texts.ts'
import { getSkyhook } from '../fleet/objects/read.ts'
import { envelope, print, type Column } from '../base/output/print.ts'
import type { StepOfLine, StepLine } from '../../schemas/step-log.ts'
import { isForbidden, isNoPrevious, readLog } from '../fleet/agent-log/read-log.ts'
import type { AgentPod } from '../fleet/fleet-view/fleet-view.ts'
import { messageOf } from '../../schemas/json.ts'
import { elapsed, formatAge } from '../base/output/durations.ts'
import { skyhookFlag } from './package.ts'

export const logs = defineCommand({
  name: 'logs',
  summary: 'show the output of the steps of a Skyhook on nodes in trouble, or on those that you name; -f: live',
  description:
    "Needs no access to hosts: agents print the output of steps into their pods' logs while the steps run, without " +
    'secrets. If a step writes very much, the log has samples and marks each gap. The log of an agent ends with its ' +
    'pod. Older output is on the host, and the command prints where. With -f it continues with the next agent when ' +
    'one is replaced.',
  example: 'kubectl skyhook logs tuning',
  otherExamples: ['kubectl skyhook logs tuning --node n1 --package shellscript -f'],
  arguments: logArguments,
  flags: {
    ...logFlags,
    stage: { type: 'text', placeholder: 'STAGE', choices: stepStages, summary: 'only this stage, with its checks' },
    previous: { type: 'boolean', short: 'p', summary: 'the log before the last restart of the agent in its pod' },
    follow: { type: 'boolean', short: 'f', summary: 'continue until ctrl-C' },
  },
  formats: ['table', 'json', 'yaml'],
  exitCodes: { ...logExitCodes, [exitCodes.interrupted]: 'interrupted by ctrl-C, the usual end of --follow' },
  run: async (
    context,
    { arguments: { skyhook }, flags: { node: patterns, package: name, stage, previous, follow } },
  ) => {
    if (previous && follow)
      throw usageError('--previous is the log of an agent that has ended, which cannot be followed')
    if (follow && context.format === 'yaml') throw usageError('-f goes with -o json, one line each, not with yaml')
    const { transport } = await context.connect()
    const found = await getSkyhook(transport, skyhook, context.signal)
    const opened = await openChosen(context, found, patterns)
    const nodes = [...opened.pods.keys()]
    const selection: StepSelection = { skyhook, package: name, stage }
    const originOf = (node: string, of: StepOfLine): string =>
      [...(nodes.length > 1 ? [node] : []), ...(name === undefined ? [of.package] : [])].join(' ')
    if (follow) {
      const folder = hostFolderOf(selection, opened.logRoot)
      const show = (node: string) => (logged: LoggedLine) => showLive(context, node, originOf, logged)
      const note = (text: string): void => context.stderr.write(`${text}\n`)
      const { ports } = opened
      await Promise.all(nodes.map((node) => followSteps({ ports, node, selection, folder }, show(node), note)))
      return exitCodes.interrupted
    }
    const items: object[] = []
    let isWhole = true
    for (const node of nodes) {
      const lines: LoggedLine[] = []
      const request = { node, selection, isPrevious: previous }
      isWhole = (await readNode(opened, context, request, (logged) => lines.push(logged))) && isWhole
      for (const logged of inStepOrder(lines))
        if (context.format === 'table') showText(context, originOf(node, logged.line.of), logged)
        else items.push(itemOf(node, logged.line, logged.stamp))
    }
    if (context.format !== 'table')
      await print(context, { rows: items, columns: [], document: envelope('StepLogLineList', items) })
    return isWhole ? exitCodes.ok : exitCodes.failed
  },
})

/** Reports of earlier agents are not output. */
function showText({ stdout }: Context, origin: string, { line }: LoggedLine): void {
  if (line.what === 'ended' && line.isRepeated) return
  stdout.write(linesFrom(origin, textOf(line)))
}

function showLive(
  context: Context,
  node: string,
  originOf: (node: string, of: StepOfLine) => string,
  logged: LoggedLine,
): void {
  if (context.format === 'json') context.stdout.document(`${JSON.stringify(itemOf(node, logged.line, logged.stamp))}\n`)
  else showText(context, originOf(node, logged.line.of), logged)
}

export const packageLogs = defineCommand({
  name: 'package logs',
  summary: "show the output of a package's steps",
  description:
    "Reads the logs of the agents' pods, which have the output as the steps write it. Older output is on the host, " +
    'in /var/log/skyhook/SKYHOOK/PACKAGE_NAME/VERSION, with the package_name of config.json. `logs` also shows when ' +
    'steps start and how they end.',
  example: 'kubectl skyhook package logs shellscript --skyhook tuning --node n1 --tail 20',
  arguments: { package: { summary: 'name of the package', complete: 'packages' } },
  flags: {
    skyhook: skyhookFlag,
    node: { type: 'list', placeholder: 'NODE', complete: 'nodes', summary: 'only nodes of this name or pattern' },
    stage: { type: 'text', placeholder: 'STAGE', choices: stepStages, summary: 'only this stage, with its checks' },
    follow: { type: 'boolean', short: 'f', summary: 'continue until ctrl-C' },
    tail: {
      type: 'integer',
      placeholder: 'LINES',
      minimum: -1,
      default: -1,
      summary: 'last lines of each node; -1: all',
    },
  },
  exitCodes: { ...logExitCodes, [exitCodes.interrupted]: 'interrupted by ctrl-C, the usual end of --follow' },
  run: async (context, { arguments: { package: name }, flags: { skyhook, node: patterns, stage, follow, tail } }) => {
    const { transport } = await context.connect()
    await getSkyhook(transport, skyhook, context.signal)
    const opened = await openLogs(context, patterns.length === 0 ? undefined : patterns)
    const selection: StepSelection = { skyhook, package: name, stage }
    const nodes = [...opened.pods.keys()]
    if (nodes.length === 0) context.stderr.write('no logs: no agent is running\n')
    let shown = 0
    const show = (node: string, { line }: LoggedLine): void => {
      if (line.what !== 'output') return
      shown++
      context.stdout.write(linesFrom(nodes.length > 1 ? node : '', line.text))
    }
    if (follow) {
      const { ports, logRoot } = opened
      const folder = hostFolderOf(selection, logRoot)
      const note = (text: string): void => context.stderr.write(`${text}\n`)
      await Promise.all(
        nodes.map((node) => followSteps({ ports, node, selection, folder }, (line) => show(node, line), note)),
      )
      return exitCodes.interrupted
    }
    let isWhole = true
    for (const node of nodes) {
      const lines: LoggedLine[] = []
      const request = { node, selection, isPrevious: false }
      isWhole = (await readNode(opened, context, request, (line) => lines.push(line))) && isWhole
      const output = lines.filter(({ line }) => line.what === 'output')
      for (const line of tail < 0 ? output : output.slice(output.length - Math.min(tail, output.length)))
        show(node, line)
    }
    if (shown === 0 && nodes.length > 0) context.stderr.write(`no output of package "${name}" in the agents' logs\n`)
    return isWhole ? exitCodes.ok : exitCodes.failed
  },
})

export const history = defineCommand({
  name: 'history',
  summary: 'show when the steps of a Skyhook ran and how each ended, on nodes in trouble or on those that you name',
  description:
    "Reads the logs of the agents' pods. At its start an agent repeats there how the last hundred steps of its host " +
    'ended. `logs` shows the output of each attempt.',
  example: 'kubectl skyhook history tuning',
  otherExamples: ['kubectl skyhook history tuning --node n1'],
  arguments: logArguments,
  flags: logFlags,
  formats: ['table', 'wide', 'json', 'yaml'],
  exitCodes: logExitCodes,
  run: async (context, { arguments: { skyhook }, flags: { node: patterns, package: name } }) => {
    const { transport } = await context.connect()
    const found = await getSkyhook(transport, skyhook, context.signal)
    const opened = await openChosen(context, found, patterns)
    const selection: StepSelection = { skyhook, package: name }
    const rows: PastStep[] = []
    let isWhole = true
    for (const [node, pod] of opened.pods) {
      try {
        rows.push(...(await stepsOf(context, opened, { node, pod, selection })))
      } catch (error) {
        context.signal.throwIfAborted()
        if (isForbidden(error)) throw error
        context.stderr.write(`node ${node}: the log of its agent cannot be read: ${messageOf(error)}\n`)
        isWhole = false
      }
    }
    await print(context, {
      rows,
      document: envelope('StepHistory', rows),
      columns: columnsOf(context, opened.pods.size > 1),
      empty: 'no steps found in the logs',
    })
    return isWhole ? exitCodes.ok : exitCodes.failed
  },
})

/** Of the running container and, after a restart, of the one before it, whose log still exists. */
async function stepsOf(
  { stderr }: Context,
  { ports, logRoot }: OpenedLogs,
  { node, pod, selection }: { readonly node: string; readonly pod: AgentPod; readonly selection: StepSelection },
): Promise<readonly PastStep[]> {
  const lines: StepLine[] = []
  const read = async (isPrevious: boolean) =>
    await readSteps(readLog(ports, pod, { isPrevious }), selection, ({ line }) => lines.push(line))
  if (pod.restarts > 0)
    await read(true).catch((error: unknown) => {
      if (!isNoPrevious(error)) throw error
    })
  const { firstStamp } = await read(false)
  if (lines.length === 0) stderr.write(`${extentNote(node, hostFolderOf(selection, logRoot), firstStamp)}\n`)
  return pastSteps(node, lines)
}

const columnsOf = ({ clock }: Pick<Context, 'clock'>, hasNodes: boolean): readonly Column<PastStep>[] => [
  ...(hasNodes ? [{ header: 'NODE', value: ({ node }: PastStep) => node }] : []),
  { header: 'PACKAGE', value: (step) => step.package },
  { header: 'VERSION', value: ({ version }) => version ?? 'unknown' },
  { header: 'MODE', value: ({ mode }) => mode },
  { header: 'STEP', value: ({ step }) => step },
  { header: 'ATTEMPT', value: ({ attempt }) => (attempt === undefined ? 'unknown' : String(attempt)) },
  {
    header: 'AGE',
    value: ({ startedAt, endedAt }) => formatAge(clock.wallMs() - Date.parse(startedAt ?? endedAt ?? '')),
  },
  {
    header: 'DURATION',
    value: (step) => elapsed(step.durationMs ?? clock.wallMs() - Date.parse(step.startedAt ?? '')),
  },
  { header: 'RESULT', value: ({ result }) => result },
  { header: 'EXIT CODE', value: ({ exitCode }) => (exitCode === undefined ? '-' : String(exitCode)) },
  { header: 'STARTED', value: ({ startedAt }) => startedAt ?? 'unknown', isWide: true },
  { header: 'DETAIL', value: ({ detail }) => detail ?? '', isWide: true },
]
