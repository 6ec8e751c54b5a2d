/** Commands about the tool itself. */
import { timeoutSignal } from '../../schemas/clock.ts'
import { version as ownVersion } from '../../schemas/version.ts'
import { defineCommand, type Context } from '../base/framework/command.ts'
import { describeError, exitCodes } from '../base/framework/command-error.ts'
import { listAgentDaemonSets } from '../base/connection/agent-namespace.ts'
import { envelope, print } from '../base/output/print.ts'
import { connectionHelp } from '../base/framework/parse.ts'

type Row = {
  readonly component: 'kubectl-skyhook' | 'skyhookd'
  /** Absent: unknown. */
  readonly version?: string
  readonly namespace?: string
}

/** Versions of this tool and of the agents that the cluster's DaemonSet starts. */
export const version = defineCommand({
  name: 'version',
  summary: 'show the version of this tool and of the agents',
  description: 'The agents have the version of their DaemonSet; during an upgrade some are still older.',
  example: 'kubectl skyhook version --client-only',
  flags: {
    clientOnly: { type: 'boolean', summary: 'ask no cluster' },
    timeout: { type: 'duration', placeholder: 'DURATION', default: 10_000, summary: 'longest wait for the cluster' },
  },
  formats: ['table', 'json', 'yaml'],
  exitCodes: {
    // what it cannot read is unknown in its answer
    [exitCodes.refused]: null,
    [exitCodes.timeout]: 'the cluster did not answer within --timeout',
  },
  run: async (context, { flags: { clientOnly, timeout } }) => {
    const rows: Row[] = [{ component: 'kubectl-skyhook', version: ownVersion }]
    const deadline = timeoutSignal(context.clock, timeout)
    let problem: unknown
    if (!clientOnly) {
      try {
        rows.push(...(await agentVersions(context, AbortSignal.any([context.signal, deadline]))))
      } catch (error) {
        context.signal.throwIfAborted()
        problem = error
        rows.push({ component: 'skyhookd' })
      }
    }
    await print(context, {
      rows,
      document: envelope('VersionList', rows),
      columns: [
        { header: 'COMPONENT', value: ({ component }) => component },
        { header: 'VERSION', value: ({ version = 'unknown' }) => version },
        { header: 'NAMESPACE', value: ({ namespace = '' }) => namespace },
      ],
    })
    if (problem !== undefined) context.stderr.write(`${describeError(problem)}\n`)
    return deadline.aborted ? exitCodes.timeout : exitCodes.ok
  },
})

async function agentVersions(context: Context, signal: AbortSignal): Promise<readonly Row[]> {
  const { transport, namespace } = await context.connect()
  const { items = [] } = await listAgentDaemonSets(transport, signal, namespace)
  if (items.length === 0) context.stderr.write('no DaemonSet of skyhookd in the cluster\n')
  return items.map(({ metadata: { labels = {}, namespace } }) => ({
    component: 'skyhookd',
    ...(labels['app.kubernetes.io/version'] !== undefined && { version: labels['app.kubernetes.io/version'] }),
    ...(namespace !== undefined && { namespace }),
  }))
}

const program = 'kubectl-skyhook'

export const completion = defineCommand({
  name: 'completion',
  summary: 'print the script that completes commands and names in a shell',
  description:
    'bash: source <(kubectl-skyhook completion bash), with the package bash-completion. zsh: source the output in ' +
    '.zshrc after compinit. fish: kubectl-skyhook completion fish | source. For "kubectl skyhook" itself, kubectl ' +
    'asks the program kubectl_complete-skyhook, which comes with this tool.',
  example: 'kubectl skyhook completion bash',
  arguments: { shell: { summary: 'bash, zsh or fish', choices: ['bash', 'zsh', 'fish'] } },
  isLocal: true,
  run: async ({ stdout }, { arguments: { shell } }) => {
    const script = await scriptOf(shell)
    // The library's script for bash cannot be sourced twice, or beside another program's.
    stdout.write(shell === 'bash' ? script.replaceAll(/^readonly /gm, '') : script)
    return exitCodes.ok
  },
})

/** The library prints its scripts and does not return them. */
async function scriptOf(shell: string): Promise<string> {
  const { RootCommand } = await import('@bomb.sh/tab')
  const { log } = console
  let script = ''
  console.log = (text: string) => {
    script += `${text}\n`
  }
  try {
    new RootCommand().setup(program, program, shell)
  } finally {
    console.log = log
  }
  return script
}

export const options = defineCommand({
  name: 'options',
  summary: "list kubectl's connection flags, which every command takes",
  example: 'kubectl skyhook options',
  isLocal: true,
  run: async ({ stdout }) => {
    stdout.write(connectionHelp())
    return await Promise.resolve(exitCodes.ok)
  },
})
