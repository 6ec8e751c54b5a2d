/** Whether a cluster, a node or this host is fit for agents. */
import { type Context, defineCommand } from '../base/framework/command.ts'
import { usageError, exitCodes, type ExitCode } from '../base/framework/command-error.ts'
import { type Check, reportText } from '../doctor/finding.ts'
import { checkCluster, checkNode } from '../doctor/read/check-cluster.ts'
import { hostReport } from '../doctor/host-report.ts'
import { checkTakeover } from '../doctor/read/read-takeover.ts'
import { doctorPainter } from '../base/output/painters.ts'
import { envelope, print } from '../base/output/print.ts'

export const doctor = defineCommand({
  name: 'doctor',
  summary: 'find problems of the installation, of nodes and of hosts, and say how to fix them',
  description:
    'Checks versions, rights of the agents, admission policies, resource definitions, priority levels, agents, ' +
    'left-over cordons and slots, taints that nobody removes, and problems of hosts that agents report. --node ' +
    'checks one node and its host, --host the machine that it runs on, --takeover what the Skyhook operator has ' +
    'left in the cluster, and what agents will do about it. Each finding has a stable id and a remedy. What you ' +
    'may not read is unknown. Nothing is changed.',
  example: 'kubectl skyhook doctor --node n1',
  flags: {
    node: {
      type: 'text',
      placeholder: 'NODE',
      complete: 'nodes',
      summary: 'only findings about this node and its host',
    },
    host: { type: 'boolean', summary: 'only this machine, as a host of agents; asks no cluster' },
    takeover: {
      type: 'boolean',
      summary: 'only what a takeover from the Skyhook operator will do, and what to do before it, in order',
    },
    copyDirRoot: {
      type: 'text',
      placeholder: 'DIR',
      default: '/var/lib/skyhook',
      complete: 'files',
      summary: "with --host: the chart's copyDirRoot",
    },
    agentLogRoot: {
      type: 'text',
      placeholder: 'DIR',
      default: '/var/log/skyhook',
      complete: 'files',
      summary: "with --host: the chart's agentLogRoot",
    },
  },
  exitCodes: {
    [exitCodes.failed]: 'a finding is an error',
    [exitCodes.notFound]: 'the node does not exist, or no agents are installed',
  },
  formats: ['table', 'json', 'yaml'],
  async run(context, { flags: { node, host, takeover, copyDirRoot, agentLogRoot } }) {
    const { clock, random, signal } = context
    if (takeover && (host || node !== undefined)) throw usageError('--takeover excludes --host and --node')
    if (host) {
      if (node !== undefined) throw usageError('--host and --node exclude each other')
      const { readLocalHost } = await import('../doctor/read/read-host.ts')
      const folders = { copyDirRoot, agentLogRoot }
      return await report(context, hostReport(await readLocalHost({ clock, random, folders })))
    }
    const connection = await context.connect()
    const { transport } = connection
    if (takeover) return await report(context, await checkTakeover(transport, signal))
    const request = { namespace: await connection.agentNamespace(), clock, signal }
    const checks =
      node === undefined ? await checkCluster(transport, request) : await checkNode(transport, request, node)
    return await report(context, checks)
  },
})

async function report(context: Context, checks: readonly Check[]): Promise<ExitCode> {
  await print(context, {
    rows: [reportText(checks)],
    document: envelope('Check', checks),
    lines: (block) => block.trimEnd(),
    paint: doctorPainter,
  })
  return checks.some(({ verdict }) => verdict === 'error') ? exitCodes.failed : exitCodes.ok
}
