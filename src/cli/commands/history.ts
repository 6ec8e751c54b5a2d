import { isForbidden, isNoPrevious, readLog } from '../agent-log/read-log.ts'
import {
  logArguments,
  logExitCodes,
  logFlags,
  extentNote,
  type OpenedLogs,
  readSteps,
  openChosen,
} from '../agent-log/node-log.ts'
import type { AgentPod } from '../fleet-view/fleet-view.ts'
import { type PastStep, pastSteps, hostFolderOf, type StepSelection } from '../agent-log/step-texts.ts'
import { type Context, defineCommand } from '../framework/command.ts'
import { exitCodes } from '../framework/command-error.ts'
import { getSkyhook } from '../objects/skyhooks.ts'
import { messageOf } from '../../schemas/json.ts'
import type { StepLine } from '../../schemas/step-log.ts'
import { elapsed, formatAge } from '../output/durations.ts'
import { envelope, print, type Column } from '../output/print.ts'

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
