import { type Context, defineCommand } from '../framework/command.ts'
import { usageError, exitCodes } from '../framework/command-error.ts'
import {
  logArguments,
  logExitCodes,
  logFlags,
  followSteps,
  type LoggedLine,
  readNode,
  openChosen,
} from '../agent-log/node-log.ts'
import {
  hostFolderOf,
  inStepOrder,
  itemOf,
  linesFrom,
  type StepSelection,
  stepStages,
  textOf,
} from '../agent-log/step-texts.ts'
import { getSkyhook } from '../objects/skyhooks.ts'
import { envelope, print } from '../output/print.ts'
import type { StepOfLine } from '../../schemas/step-log.ts'

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
