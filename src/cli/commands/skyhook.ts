/** Commands that change Skyhooks: pause, resume, disable, enable, reset and hand-back. */
import {
  disableKey,
  pauseKey,
  nodeStateKey,
  resetBatchesKey,
  statusKey,
  versionKey,
} from '../../schemas/annotations.ts'
import { defineCommand, type Command, type Context } from '../base/framework/command.ts'
import { usageError, exitCodes, type ExitCode, refusedError } from '../base/framework/command-error.ts'
import {
  applyChanges,
  changeFormats,
  type Change,
  type Edit,
  type Editable,
  editPackages,
  isPackage,
} from '../fleet/objects/edit.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { isNotFound } from '../../kube/errors.ts'
import { counted } from '../../schemas/wording.ts'
import { skyhookConditions } from '../../schemas/catalogue/conditions.ts'
import { listAgentDaemonSets } from '../base/connection/agent-namespace.ts'
import {
  getSkyhook,
  listNodes,
  listSkyhookNames,
  type NodeMetadata,
  nodePath,
  noPackage,
  noSkyhook,
  publishedPackages,
  skyhookPath,
  skyhooksOn,
} from '../fleet/objects/read.ts'

type Switch = {
  readonly name: 'pause' | 'resume' | 'disable' | 'enable'
  readonly key: string
  readonly isOn: boolean
  readonly done: string
  /** Asked before; absent: the action has no risk. */
  readonly question?: string
  readonly summary: string
  readonly description: string
}

const switches: readonly Switch[] = [
  {
    name: 'pause',
    key: pauseKey,
    isOn: true,
    done: 'paused',
    question: 'Nodes at work stop after their current step, and stay cordoned if they are.',
    summary: 'pause a Skyhook: nodes finish the current step, and start nothing',
    description:
      'Nodes that are at work keep their slot and their cordon until the Skyhook is resumed. A paused Skyhook still ' +
      'holds up Skyhooks of a later priority on nodes where it is not complete.',
  },
  {
    name: 'resume',
    key: pauseKey,
    isOn: false,
    done: 'resumed',
    summary: 'resume a paused Skyhook',
    description: 'Nodes continue where they stopped. It does not ask for confirmation.',
  },
  {
    name: 'disable',
    key: disableKey,
    isOn: true,
    done: 'disabled',
    question: 'Nodes at work finish, others start nothing.',
    summary: 'disable a Skyhook: nodes at work finish, others start nothing',
    description: 'A disabled Skyhook does not hold up Skyhooks of a later priority.',
  },
  {
    name: 'enable',
    key: disableKey,
    isOn: false,
    done: 'enabled',
    summary: 'enable a disabled Skyhook',
    description: 'It does not ask for confirmation.',
  },
]

export const lifecycleCommands: readonly Command[] = switches.map((one) =>
  defineCommand({
    name: one.name,
    summary: one.summary,
    description: one.description,
    example: `kubectl skyhook ${one.name} tuning${one.question === undefined ? '' : ' --yes'}`,
    arguments: { skyhook: { summary: 'name of the Skyhook', isOptional: true, complete: 'skyhooks' } },
    flags: { all: { type: 'boolean', summary: 'every Skyhook of the cluster instead of one' } },
    formats: changeFormats,
    exitCodes: {
      [exitCodes.notFound]: 'the Skyhook does not exist',
      ...(one.question === undefined && { [exitCodes.refused]: 'refused by the API server' }),
    },
    isAction: true,
    run: async (context, { arguments: { skyhook }, flags: { all } }) => await runSwitch(context, one, skyhook, all),
  }),
)

async function runSwitch(context: Context, one: Switch, name: string | undefined, all: boolean): Promise<ExitCode> {
  if ((name === undefined) !== all) {
    const message = all ? 'give the name of a Skyhook or --all, not both' : 'the name of a Skyhook is missing'
    throw usageError(message, `kubectl skyhook ${one.name} NAME, or --all for every Skyhook`)
  }
  const names = name === undefined ? await allNames(context) : [name]
  if (names.length === 0) context.stderr.write('there is no Skyhook\n')
  const what = name === undefined ? `all ${names.length} Skyhooks (${names.join(', ')})` : `Skyhook "${name}"`
  if (one.question !== undefined && names.length > 0) await context.confirm(`${one.name} ${what}? ${one.question}`)
  return await applyChanges(
    context,
    names.map((skyhook) => ({
      kind: 'Skyhook',
      name: skyhook,
      path: skyhookPath(skyhook),
      edit: () => ({ annotations: { [one.key]: one.isOn ? 'true' : null } }),
      done: one.done,
      notFound: () => noSkyhook(skyhook),
    })),
  )
}

async function allNames(context: Context): Promise<readonly string[]> {
  const { transport } = await context.connect()
  return await listSkyhookNames(transport, context.signal)
}

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
function batchReset({ clock }: Pick<Context, 'clock'>, name: string): Change {
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
function wholeReset({ metadata }: Editable, skyhook: string): Edit {
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

export const handBack = defineCommand({
  name: 'hand-back',
  summary: 'after the agents are removed: remove from all Skyhooks the conditions that only agents keep current',
  description:
    'Ready, Reconciling, Stalled and others stay on a Skyhook as the last agent wrote them. After an edit they are ' +
    'wrong, and kubectl wait never ends. The status of the Skyhook operator stays, like everything on Nodes. ' +
    'Refused while agents are installed: they would write the conditions again.',
  example: 'kubectl skyhook hand-back --yes',
  formats: changeFormats,
  exitCodes: { [exitCodes.refused]: 'agents are installed, or refused by the API server' },
  isAction: true,
  run: async (context) => {
    const { transport } = await context.connect()
    const [installed] = (await listAgentDaemonSets(transport, context.signal)).items ?? []
    if (installed !== undefined) {
      const { namespace, name } = installed.metadata
      throw refusedError(`DaemonSet ${namespace}/${name} of the agents is installed`, 'remove the agents first')
    }
    const names = await listSkyhookNames(transport, context.signal)
    if (names.length === 0) context.stderr.write('there is no Skyhook\n')
    else
      await context.confirm(`Remove the conditions of agents from all ${names.length} Skyhooks (${names.join(', ')})?`)
    return await applyChanges(
      context,
      names.map((name) => ({
        kind: 'Skyhook',
        name,
        path: `${skyhookPath(name)}/status`,
        edit: withoutOurConditions,
        done: 'handed back',
        notFound: () => noSkyhook(name),
      })),
    )
  },
})

const ourConditions: ReadonlySet<string> = new Set(
  Object.entries(skyhookConditions).flatMap(([type, { origin }]) => (origin === 'skyhookd' ? [type] : [])),
)

function withoutOurConditions({ status }: Editable): Edit | undefined {
  const conditions = status?.conditions ?? []
  const kept = conditions.filter(({ type }) => !ourConditions.has(type))
  return kept.length === conditions.length ? undefined : { conditions: kept }
}
