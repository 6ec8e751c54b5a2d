import { logExitCodes, followSteps, type LoggedLine, openLogs, readNode } from '../agent-log/node-log.ts'
import { hostFolderOf, linesFrom, type StepSelection, stepStages } from '../agent-log/step-texts.ts'
import { defineCommand } from '../framework/command.ts'
import { exitCodes } from '../framework/command-error.ts'
import { getSkyhook } from '../objects/skyhooks.ts'

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
    skyhook: {
      type: 'text',
      placeholder: 'NAME',
      isRequired: true,
      complete: 'skyhooks',
      summary: 'the Skyhook of the package',
    },
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
