/** A support archive of what users may show to others. */
import { resolve } from 'node:path'
import { createLocalRoot } from '../../host/fs/host-root.ts'
import { defineCommand } from '../base/framework/command.ts'
import { refusedError, exitCodes } from '../base/framework/command-error.ts'
import { packBundle, type BundleIndex } from '../bundle/archive.ts'
import { collectBundle } from '../bundle/collect.ts'
import { envelope, print } from '../base/output/print.ts'
import { checkCluster } from '../doctor/read/check-cluster.ts'

export const bundle = defineCommand({
  name: 'bundle',
  summary: 'write a support archive: the objects of Skyhooks and agents in the API, without secrets',
  description:
    'The archive (tar.gz) has Skyhooks, DeploymentPolicies, Nodes, Leases, agents, Events, pods of nodes that are ' +
    'out of service, and what doctor finds. It has no Secrets, no values of environment variables, no contents of ' +
    'configuration files, no last-applied annotations and no managedFields. Anything else that looks like a secret ' +
    'is replaced. It lists what it left out, and what you may not read. explain --from and dashboard --from read ' +
    'it. Review it before you share it.',
  example: 'kubectl skyhook bundle --file support.tar.gz',
  flags: {
    file: {
      type: 'text',
      short: 'f',
      placeholder: 'FILE',
      complete: 'files',
      summary: 'archive to write; by default skyhook-bundle-TIME.tar.gz',
    },
    node: { type: 'list', placeholder: 'NODE', complete: 'nodes', summary: 'with the pods of these nodes too' },
    force: { type: 'boolean', summary: 'overwrite the file' },
  },
  exitCodes: {
    [exitCodes.notFound]: 'no agents are installed',
    [exitCodes.refused]: 'the file exists, or you may not read what it needs',
  },
  formats: ['table', 'json', 'yaml'],
  async run(context, { flags }) {
    const { clock, signal, random } = context
    const connection = await context.connect()
    const { transport } = connection
    const namespace = await connection.agentNamespace()
    const time = new Date(clock.wallMs()).toISOString().replaceAll(/[:-]|\.\d+/g, '')
    const file = flags.file ?? `skyhook-bundle-${time}.tar.gz`
    const root = createLocalRoot(random)
    const path = resolve(file)
    if (!flags.force && (await root.stat(path)) !== undefined)
      throw refusedError(`${file} exists`, 'name another file with --file, or overwrite it with --force')
    const checks = await checkCluster(transport, { namespace, clock, signal })
    const documents = new Map([['doctor.json', envelope('Check', checks)]])
    const made = await collectBundle(transport, { namespace, clock, signal, nodes: flags.node, documents })
    // for the user only: it still shows how a cluster is built
    await root.writeFile(path, await packBundle(made), 0o600)
    await print(context, {
      rows: [indexText(file, made.index)],
      document: envelope('BundleList', [{ file, ...made.index }]),
      lines: (block) => block,
    })
    return exitCodes.ok
  },
})

function indexText(file: string, { sources, leftOut }: BundleIndex): string {
  const has = sources.flatMap((one) => ('count' in one ? [`  ${one.what}: ${one.count}`] : []))
  const unknown = sources.flatMap((one) => ('unknown' in one ? [`  ${one.what}: ${one.unknown}`] : []))
  return [
    `${file} has`,
    ...has,
    ...(unknown.length > 0 ? ['unknown, and not in it', ...unknown] : []),
    'left out',
    ...leftOut.map((text) => `  ${text}`),
  ].join('\n')
}
