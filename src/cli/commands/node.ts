/** Commands on nodes: list and status, and those that change nodes: reset, ignore, unignore, hold, release. */
import { defineCommand, type Command, type Context } from '../base/framework/command.ts'
import { exitCodes, notFoundError, type ExitCode } from '../base/framework/command-error.ts'
import {
  getSkyhook,
  listNodes,
  matchNames,
  type NodeMetadata,
  nodePath,
  type PublishedPackage,
  publishedPackages,
  skyhooksOn,
  summarize,
  unmatchedPatterns,
} from '../fleet/objects/read.ts'
import { print } from '../base/output/print.ts'
import { cordonKey, ignoreLabel, keepCordonedKey, nodeStateKey } from '../../schemas/annotations.ts'
import { applyChanges, changeFormats, type Edit, type Editable } from '../fleet/objects/edit.ts'
import { counted } from '../../schemas/wording.ts'

const formats = ['table', 'wide', 'json', 'yaml', 'name'] as const

/** In the operator's JSON. */
type ListedNode = {
  readonly nodeName: string
  readonly status: string
  readonly packagesComplete: number
  readonly packagesTotal: number
  readonly restarts: number
}

export const nodeList = defineCommand({
  name: 'node list',
  summary: 'list the nodes that have state of a Skyhook',
  description: 'The status of a node follows from its packages; kubectl skyhook status shows why it waits.',
  example: 'kubectl skyhook node list --skyhook tuning',
  flags: {
    skyhook: { type: 'text', placeholder: 'NAME', isRequired: true, complete: 'skyhooks', summary: 'the Skyhook' },
  },
  formats,
  exitCodes: { [exitCodes.notFound]: 'the Skyhook does not exist, and no node has state of it' },
  run: async (context, { flags: { skyhook } }) => {
    const { transport } = await context.connect()
    const nodes = (await listNodes(transport, context.signal)).flatMap((node): ListedNode[] => {
      const packages = publishedPackages(node, skyhook)
      if (packages === undefined) return []
      const { status, complete, total, restarts } = summarize(packages)
      return [{ nodeName: node.metadata.name, status, packagesComplete: complete, packagesTotal: total, restarts }]
    })
    if (nodes.length === 0) await getSkyhook(transport, skyhook, context.signal)
    await print(context, {
      rows: nodes,
      document: { skyhookName: skyhook, nodes },
      nameOf: ({ nodeName }) => `node/${nodeName}`,
      before: `Skyhook: ${skyhook}\nNodes: ${countsOf(nodes)}\n\n`,
      empty: `no node has state of Skyhook "${skyhook}" yet`,
      columns: [
        { header: 'NODE', value: ({ nodeName }) => nodeName },
        { header: 'STATUS', value: ({ status }) => status },
        { header: 'PACKAGES', value: ({ packagesComplete, packagesTotal }) => `${packagesComplete}/${packagesTotal}` },
        { header: 'RESTARTS', value: ({ restarts }) => String(restarts), isWide: true },
      ],
    })
    return exitCodes.ok
  },
})

function countsOf(nodes: readonly ListedNode[]): string {
  const statuses = ['complete', 'in_progress', 'erroring', 'unknown']
  const counts = statuses.map((status) => [status, nodes.filter((node) => node.status === status).length] as const)
  const parts = counts.filter(([, count]) => count > 0).map(([status, count]) => `${count} ${status}`)
  return `${nodes.length} (${parts.join(', ')})`
}

/** In the operator's JSON. */
type NodeActivity = Omit<ListedNode, 'restarts'> & {
  readonly skyhookName: string
  readonly packages?: readonly PublishedPackage[]
}

export const nodeStatus = defineCommand({
  name: 'node status',
  summary: 'show the state of all Skyhooks on nodes',
  description: 'Without names: on every node. With -o wide: one line per package.',
  example: 'kubectl skyhook node status n1 -o wide',
  arguments: {
    nodes: {
      summary: 'names, or regular expressions for whole names',
      isVariadic: true,
      isOptional: true,
      complete: 'nodes',
    },
  },
  flags: { skyhook: { type: 'text', placeholder: 'NAME', complete: 'skyhooks', summary: 'only this Skyhook' } },
  formats,
  exitCodes: { [exitCodes.notFound]: 'a name or pattern selects no node' },
  run: async (context, { arguments: { nodes: patterns }, flags: { skyhook } }) => {
    const { transport } = await context.connect()
    const nodes =
      patterns.length === 0 ? await listNodes(transport, context.signal) : await selectNodes(context, patterns)
    const activities = nodes.flatMap((node) =>
      skyhooksOn(node)
        .filter((name) => skyhook === undefined || name === skyhook)
        .flatMap((name): NodeActivity[] => {
          const packages = publishedPackages(node, name)
          if (packages === undefined) return []
          const { status, complete, total } = summarize(packages)
          return [
            {
              nodeName: node.metadata.name,
              skyhookName: name,
              status,
              packagesComplete: complete,
              packagesTotal: total,
              ...(total > 0 && { packages: [...packages.values()] }),
            },
          ]
        }),
    )
    const shared = {
      document: activities,
      empty: `no state of a Skyhook on ${patterns.length === 0 ? 'any node' : 'these nodes'}`,
    }
    if (context.format === 'wide') {
      const rows = activities.flatMap(({ nodeName, skyhookName, packages = [] }) =>
        packages.map((one) => ({ nodeName, skyhookName, ...one })),
      )
      await print(context, {
        ...shared,
        rows,
        columns: [
          { header: 'NODE', value: ({ nodeName }) => nodeName },
          { header: 'SKYHOOK', value: ({ skyhookName }) => skyhookName },
          { header: 'PACKAGE', value: ({ name }) => name },
          { header: 'VERSION', value: ({ version }) => version },
          { header: 'STAGE', value: ({ stage }) => stage },
          { header: 'STATE', value: ({ state }) => state },
          { header: 'RESTARTS', value: ({ restarts }) => String(restarts) },
          { header: 'IMAGE', value: ({ image = '' }) => image },
        ],
      })
      return exitCodes.ok
    }
    await print(context, {
      ...shared,
      rows: activities,
      nameOf: ({ nodeName }) => `node/${nodeName}`,
      columns: [
        { header: 'NODE', value: ({ nodeName }) => nodeName },
        { header: 'SKYHOOK', value: ({ skyhookName }) => skyhookName },
        { header: 'STATUS', value: ({ status }) => status },
        { header: 'PACKAGES', value: ({ packagesComplete, packagesTotal }) => `${packagesComplete}/${packagesTotal}` },
      ],
    })
    return exitCodes.ok
  },
})

const nodesArgument = {
  nodes: {
    summary: 'names, or regular expressions for whole names; an exact name selects only that node',
    isVariadic: true,
    complete: 'nodes',
  },
} as const

const exitCodesOfNodes = { [exitCodes.notFound]: 'a name or pattern selects no node' }

/** The nodes that the patterns select. Throws "not found" for a pattern without a node: it may be a wrong name. */
export async function selectNodes(context: Context, patterns: readonly string[]): Promise<readonly NodeMetadata[]> {
  const { transport } = await context.connect()
  const nodes = await listNodes(transport, context.signal)
  const names = nodes.map(({ metadata }) => metadata.name)
  const unmatched = unmatchedPatterns(patterns, names)
  if (unmatched.length > 0)
    throw notFoundError(`no node matches ${unmatched.map((one) => `"${one}"`).join(', ')}`, 'see kubectl get nodes')
  const selected = new Set(matchNames(patterns, names))
  return nodes.filter(({ metadata }) => selected.has(metadata.name))
}

type NodeChange = {
  readonly name: string
  readonly summary: string
  readonly description: string
  readonly done: string
  readonly edit: (node: Editable) => Edit
}

const isAtWork = ({ metadata }: Editable): boolean =>
  Object.entries(metadata.annotations ?? {}).some(([key, value]) => key.startsWith(cordonKey('')) && value === 'true')

const simpleChanges: readonly NodeChange[] = [
  {
    name: 'ignore',
    summary: 'let agents leave nodes alone',
    description:
      'Sets the label skyhook.nvidia.com/ignore=true. A node at work pauses between two steps. It does not ' +
      'ask for confirmation.',
    done: 'ignored',
    edit: () => ({ labels: { [ignoreLabel]: 'true' } }),
  },
  {
    name: 'unignore',
    summary: 'let agents work on ignored nodes again',
    description: 'Removes the label skyhook.nvidia.com/ignore. It does not ask for confirmation.',
    done: 'unignored',
    edit: () => ({ labels: { [ignoreLabel]: null } }),
  },
  {
    name: 'hold',
    summary: 'keep nodes cordoned when their work is done',
    description:
      'Sets the annotation skyhook.nvidia.com/keep-cordoned=true. A node that a Skyhook has cordoned stays cordoned ' +
      'when it is complete; kubectl cordon would change nothing there. A node that takes pods is cordoned at once. ' +
      'It does not ask for confirmation.',
    done: 'held',
    edit: () => ({ annotations: { [keepCordonedKey]: 'true' }, unschedulable: true }),
  },
  {
    name: 'release',
    summary: 'end a hold: nodes take pods again when no Skyhook needs them cordoned',
    description:
      'Removes the annotation skyhook.nvidia.com/keep-cordoned. A node at work is uncordoned by its agent when it is ' +
      'complete, unless it was cordoned before the work. A held node without work is uncordoned now, even if ' +
      'somebody had cordoned it before the hold. It does not ask for confirmation.',
    done: 'released',
    edit: (node) => {
      const isHeld = node.metadata.annotations?.[keepCordonedKey] === 'true'
      return { annotations: { [keepCordonedKey]: null }, ...(isHeld && !isAtWork(node) && { unschedulable: false }) }
    },
  },
]

const simpleCommands: readonly Command[] = simpleChanges.map(({ name, summary, description, done, edit }) =>
  defineCommand({
    name: `node ${name}`,
    summary,
    description,
    example: `kubectl skyhook node ${name} n1`,
    arguments: nodesArgument,
    formats: changeFormats,
    exitCodes: { ...exitCodesOfNodes, [exitCodes.refused]: 'refused by the API server' },
    isAction: true,
    run: async (context, { arguments: { nodes } }) =>
      await changeNodes(context, await selectNodes(context, nodes), { done, edit }),
  }),
)

const nodeReset = defineCommand({
  name: 'node reset',
  summary: 'reset a Skyhook on some nodes: every package starts over there',
  description: 'The agents of these nodes start over as on new nodes, within the budget.',
  example: 'kubectl skyhook node reset n1 --skyhook tuning --yes',
  arguments: nodesArgument,
  flags: {
    skyhook: {
      type: 'text',
      placeholder: 'NAME',
      isRequired: true,
      complete: 'skyhooks',
      summary: 'the Skyhook to reset',
    },
  },
  formats: changeFormats,
  exitCodes: exitCodesOfNodes,
  isAction: true,
  run: async (context, { arguments: { nodes: patterns }, flags: { skyhook } }) => {
    const selected = await selectNodes(context, patterns)
    const nodes = selected.filter((node) => publishedPackages(node, skyhook) !== undefined)
    if (nodes.length === 0) {
      context.stderr.write(`none of these nodes has state of Skyhook "${skyhook}"\n`)
      return await changeNodes(context, [], { done: 'reset', edit: () => ({}) })
    }
    const names = nodes.map(({ metadata }) => metadata.name).join(', ')
    await context.confirm(
      `Forget everything that Skyhook "${skyhook}" has done on ${counted(nodes.length, 'node')} (${names})? Packages ` +
        'run again, with their interrupts.',
    )
    return await changeNodes(context, nodes, {
      done: 'reset',
      edit: () => ({ annotations: { [nodeStateKey(skyhook)]: null } }),
    })
  },
})

export const nodeChangeCommands: readonly Command[] = [nodeReset, ...simpleCommands]

/** The same edit on each of these nodes. */
export async function changeNodes(
  context: Context,
  nodes: readonly NodeMetadata[],
  { done, edit }: { readonly done: string; readonly edit: (node: Editable) => Edit | undefined },
): Promise<ExitCode> {
  return await applyChanges(
    context,
    nodes.map(({ metadata: { name } }) => ({ kind: 'Node', name, path: nodePath(name), edit, done })),
  )
}
