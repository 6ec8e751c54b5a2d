import { nodeStateKey, resetBatchesKey, statusKey, versionKey } from '../../schemas/annotations.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { isNotFound } from '../../kube/errors.ts'
import { defineCommand, type Context } from '../framework/command.ts'
import { exitCodes } from '../framework/command-error.ts'
import {
  applyChanges,
  type Change,
  changeFormats,
  type Edit,
  type Editable,
  editPackages,
  isPackage,
} from '../objects/edit.ts'
import { listNodes, nodePath, type NodeMetadata, publishedPackages, skyhooksOn } from '../objects/nodes.ts'
import { getSkyhook, noPackage, noSkyhook, skyhookPath } from '../objects/skyhooks.ts'
import { counted } from '../../schemas/wording.ts'

export const reset = defineCommand({
  name: 'reset',
  summary: 'reset a Skyhook on all nodes: every package starts over',
  description:
    'Agents stop their work for the Skyhook and start over as on new nodes, within the budget. A cordon stays until ' +
    'the node is complete. With --package only one package starts over; a package that is no longer in the spec and ' +
    'whose uninstall cannot pass is given up. The batches of a DeploymentPolicy start over too.',
  example: 'kubectl skyhook reset tuning --yes',
  arguments: { skyhook: { summary: 'name of the Skyhook', complete: 'skyhooks' } },
  flags: {
    package: { type: 'text', placeholder: 'NAME[:VERSION]', complete: 'packages', summary: 'only this package' },
    skipBatchReset: { type: 'boolean', summary: 'let the batches of the DeploymentPolicy continue' },
  },
  formats: changeFormats,
  exitCodes: { [exitCodes.notFound]: 'the Skyhook or the package does not exist, and no node has state of it' },
  isAction: true,
  run: async (context, { arguments: { skyhook: name }, flags }) => {
    const { transport } = await context.connect()
    const withState = (await listNodes(transport, context.signal)).filter((node) => skyhooksOn(node).includes(name))
    // Nodes keep the state of a deleted Skyhook: it can be reset without it.
    const skyhook = await getIfKnown(context, name)
    if (skyhook === undefined && withState.length === 0) throw noSkyhook(name)
    const nodes = flags.package === undefined ? withState : nodesOfPackage(withState, name, flags.package, skyhook)

    const resetsBatches =
      skyhook?.spec.deploymentPolicy !== undefined && flags.package === undefined && !flags.skipBatchReset
    const changes: Change[] = nodes.map(({ metadata }) => ({
      kind: 'Node',
      name: metadata.name,
      path: nodePath(metadata.name),
      edit: (node) => (flags.package === undefined ? wholeReset(node, name) : packageReset(node, name, flags.package)),
      done: flags.package === undefined ? 'reset' : `reset for ${flags.package}`,
    }))
    if (resetsBatches) changes.push(batchReset(context, name))
    const what = flags.package === undefined ? 'everything that' : `package ${flags.package} of what`
    if (changes.length > 0)
      await context.confirm(
        `Forget ${what} Skyhook "${name}" has done on ${counted(nodes.length, 'node')}? Packages run again, with ` +
          'their interrupts.',
      )
    const missing = flags.package === undefined ? '' : `package "${flags.package}" of `
    if (changes.length === 0) context.stderr.write(`no node has state of ${missing}Skyhook "${name}"\n`)
    return await applyChanges(context, changes)
  },
})

/** The nodes with state of the package. Throws "not found" for one that neither they nor the spec have. */
function nodesOfPackage(
  nodes: readonly NodeMetadata[],
  skyhook: string,
  text: string,
  known: Skyhook | undefined,
): readonly NodeMetadata[] {
  const packagesOn = (node: NodeMetadata) => [...(publishedPackages(node, skyhook)?.values() ?? [])]
  const listed = Object.entries(known?.spec.packages ?? {}).map(([name, { version }]) => ({ name, version }))
  const packages = [...listed, ...nodes.flatMap(packagesOn)]
  if (!packages.some((one) => isPackage(one, text))) {
    const names = new Set(packages.map(({ name, version }) => `${name}:${version}`))
    throw noPackage(text, skyhook, [...names].sort())
  }
  return nodes.filter((node) => packagesOn(node).some((one) => isPackage(one, text)))
}

/** Restarts the batches of a Skyhook's DeploymentPolicy: a different text is another reset. */
export function batchReset({ clock }: Pick<Context, 'clock'>, name: string): Change {
  const text = new Date(clock.wallMs()).toISOString()
  return {
    kind: 'Skyhook',
    name,
    path: skyhookPath(name),
    edit: () => ({ annotations: { [resetBatchesKey]: text } }),
    done: 'batches reset',
    notFound: () => noSkyhook(name),
  }
}

/**
 * Removes the published state of a node. Its companion stays: it distinguishes a person's reset from a lost
 * annotation. The cordon's mark stays too: only the agent knows when the node may take pods again.
 */
export function wholeReset({ metadata }: Editable, skyhook: string): Edit {
  return {
    annotations: { [nodeStateKey(skyhook)]: null, [statusKey(skyhook)]: null, [versionKey(skyhook)]: null },
    ...(metadata.labels?.[statusKey(skyhook)] !== undefined && { labels: { [statusKey(skyhook)]: null } }),
  }
}

const packageReset = (node: Editable, skyhook: string, name: string): Edit | undefined =>
  editPackages(node, skyhook, (entry) => (isPackage(entry, name) ? 'remove' : 'keep'))

async function getIfKnown(context: Context, name: string): Promise<Skyhook | undefined> {
  const { transport } = await context.connect()
  try {
    return await transport.json<Skyhook>('GET', skyhookPath(name), { signal: context.signal })
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

export const resetBatches = defineCommand({
  name: 'deployment-policy reset',
  summary: "let the batches of a Skyhook's DeploymentPolicy start over",
  description:
    'A rollout that was stopped by too many failed batches continues with a first batch. Nodes at work are not ' +
    'touched, and complete nodes stay complete.',
  example: 'kubectl skyhook deployment-policy reset tuning --yes',
  arguments: { skyhook: { summary: 'name of the Skyhook, not of its policy', complete: 'skyhooks' } },
  formats: changeFormats,
  exitCodes: { [exitCodes.notFound]: 'the Skyhook does not exist' },
  isAction: true,
  run: async (context, { arguments: { skyhook: name } }) => {
    const { transport } = await context.connect()
    const { spec } = await getSkyhook(transport, name, context.signal)
    if (spec.deploymentPolicy === undefined) {
      context.stderr.write(`Skyhook "${name}" has no DeploymentPolicy and therefore no batches\n`)
      return await applyChanges(context, [])
    }
    await context.confirm(`Start the batches of Skyhook "${name}" over?`)
    return await applyChanges(context, [batchReset(context, name)])
  },
})
