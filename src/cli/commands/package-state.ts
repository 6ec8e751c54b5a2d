/** package status and package rerun. */
import { defineCommand, type Context } from '../framework/command.ts'
import { usageError, exitCodes } from '../framework/command-error.ts'
import { changeFormats, editPackages } from '../objects/edit.ts'
import { listNodes, publishedPackages, type NodeMetadata, type PublishedPackage } from '../objects/nodes.ts'
import { getSkyhook, noPackage } from '../objects/skyhooks.ts'
import { print } from '../output/print.ts'
import { changeNodes, selectNodes } from './node-changes.ts'
import { ownValue } from '../../schemas/own-value.ts'
import { counted } from '../../schemas/wording.ts'

const skyhookFlag = {
  type: 'text',
  placeholder: 'NAME',
  isRequired: true,
  complete: 'skyhooks',
  summary: 'the Skyhook of the package',
} as const

const nodeSummary = 'only nodes of this name or regular expression; may be repeated'

/** In the operator's JSON. */
type PackageOnNode = {
  readonly nodeName: string
  readonly packageName: string
  readonly version: string
  readonly stage: string
  readonly state: string
  readonly image?: string
}

export const packageStatus = defineCommand({
  name: 'package status',
  summary: 'show how far a package is on each node',
  example: 'kubectl skyhook package status shellscript --skyhook tuning',
  arguments: { package: { summary: 'name of the package', complete: 'packages' } },
  flags: {
    skyhook: skyhookFlag,
    node: { type: 'list', placeholder: 'NODE', complete: 'nodes', summary: nodeSummary },
  },
  formats: ['table', 'wide', 'json', 'yaml', 'name'],
  exitCodes: { [exitCodes.notFound]: 'the Skyhook, the package or a node does not exist' },
  run: async (context, { arguments: { package: name }, flags: { skyhook: skyhookName, node: patterns } }) => {
    const { transport } = await context.connect()
    const skyhook = await getSkyhook(transport, skyhookName, context.signal)
    const nodes =
      patterns.length === 0 ? await listNodes(transport, context.signal) : await selectNodes(context, patterns)
    const rows = nodes.flatMap((node) =>
      entriesOf(node, skyhookName, name).map(
        ({ version, stage, state, image }): PackageOnNode => ({
          nodeName: node.metadata.name,
          packageName: name,
          version,
          stage,
          state,
          ...(image !== undefined && { image }),
        }),
      ),
    )
    const packages = skyhook.spec.packages ?? {}
    if (rows.length === 0 && ownValue(packages, name) === undefined)
      throw noPackage(name, skyhookName, Object.keys(packages))
    const where = patterns.length === 0 ? 'any node' : 'these nodes'
    const listed = Object.entries(packages).map(([key, { version }]) => `${key}:${version}`)
    await print(context, {
      rows,
      document: rows,
      nameOf: ({ nodeName }) => `node/${nodeName}`,
      before: `Skyhook: ${skyhookName}\nPackages: ${listed.sort().join(', ')}\n\n`,
      empty: `package "${name}" of Skyhook "${skyhookName}" has no state on ${where} yet`,
      columns: [
        { header: 'NODE', value: ({ nodeName }) => nodeName },
        { header: 'PACKAGE', value: ({ packageName }) => packageName },
        { header: 'VERSION', value: ({ version }) => version },
        { header: 'STAGE', value: ({ stage }) => stage },
        { header: 'STATE', value: ({ state }) => state },
        { header: 'IMAGE', value: ({ image = '' }) => image, isWide: true },
      ],
    })
    return exitCodes.ok
  },
})

export const packageRerun = defineCommand({
  name: 'package rerun',
  summary: 'run a package again on some nodes',
  description:
    'Without --stage the package starts over; with it, it continues at that stage. Other packages are not touched.',
  example: 'kubectl skyhook package rerun shellscript --skyhook tuning --node n1 --yes',
  arguments: { package: { summary: 'name of the package', complete: 'packages' } },
  flags: {
    skyhook: skyhookFlag,
    node: { type: 'list', placeholder: 'NODE', isRequired: true, complete: 'nodes', summary: nodeSummary },
    stage: {
      type: 'text',
      placeholder: 'STAGE',
      choices: ['apply', 'config', 'interrupt', 'post-interrupt'],
      summary: 'continue at this stage: apply, config, interrupt or post-interrupt',
    },
  },
  formats: changeFormats,
  exitCodes: { [exitCodes.notFound]: 'the Skyhook, the package or a node does not exist' },
  isAction: true,
  run: async (context, { arguments: { package: name }, flags: { skyhook, node: patterns, stage } }) => {
    if (patterns.length === 0) throw usageError('--node names no node')
    const version = await versionOf(context, skyhook, name)
    const isIt = (entry: PublishedPackage): boolean => entry.name === name && entry.version === version
    const selected = await selectNodes(context, patterns)
    const nodes = selected.filter((node) => entriesOf(node, skyhook, name).some(isIt))
    const skipped = selected.length - nodes.length
    if (skipped > 0)
      context.stderr.write(`${counted(skipped, 'node')} left out: no state of package "${name}" ${version} there\n`)
    const from = stage === undefined ? 'from the start' : `from its stage ${stage}`
    const names = nodes.map(({ metadata }) => metadata.name).join(', ')
    if (nodes.length > 0)
      await context.confirm(
        `Run package "${name}" ${version} again ${from} on ${counted(nodes.length, 'node')} (${names})?`,
      )
    return await changeNodes(context, nodes, {
      done: `set to run ${name} again ${from}`,
      edit: (node) =>
        editPackages(node, skyhook, (entry) => {
          if (!isIt(entry)) return 'keep'
          return stage === undefined ? 'remove' : { stage }
        }),
    })
  },
})

const entriesOf = (node: NodeMetadata, skyhook: string, name: string): readonly PublishedPackage[] =>
  [...(publishedPackages(node, skyhook)?.values() ?? [])].filter((entry) => entry.name === name)

async function versionOf(context: Context, skyhook: string, name: string): Promise<string> {
  const { transport } = await context.connect()
  const { spec } = await getSkyhook(transport, skyhook, context.signal)
  const found = ownValue(spec.packages, name)
  if (found === undefined) throw noPackage(name, skyhook, Object.keys(spec.packages ?? {}))
  return found.version
}
