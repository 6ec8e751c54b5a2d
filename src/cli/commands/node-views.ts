/** Commands that show nodes: list, status. */
import { defineCommand } from '../framework/command.ts'
import { exitCodes } from '../framework/command-error.ts'
import { listNodes, publishedPackages, skyhooksOn, summarize, type PublishedPackage } from '../objects/nodes.ts'
import { getSkyhook } from '../objects/skyhooks.ts'
import { print } from '../output/print.ts'
import { selectNodes } from './node-changes.ts'

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
type NodeActivity = {
  readonly nodeName: string
  readonly skyhookName: string
  readonly status: string
  readonly packagesComplete: number
  readonly packagesTotal: number
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
