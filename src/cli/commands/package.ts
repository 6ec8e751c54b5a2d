/** Commands on packages: on the folder of one, and on what nodes have of it. */
import { ownValue } from '../../schemas/json.ts'
import { defineCommand, type Context } from '../base/framework/command.ts'
import { exitCodes, usageError } from '../base/framework/command-error.ts'
import {
  getSkyhook,
  listNodes,
  type NodeMetadata,
  noPackage,
  type PublishedPackage,
  publishedPackages,
} from '../fleet/objects/read.ts'
import { registryFlags } from '../base/registry/flags.ts'
import { changeFormats, editPackages } from '../fleet/objects/edit.ts'
import { print } from '../base/output/print.ts'
import { changeNodes, selectNodes } from './node.ts'
import { counted } from '../../schemas/wording.ts'

/** A new package to start with. */
export const packageInit = defineCommand({
  name: 'package init',
  summary: 'create the folder of a new package, in which every file is explained',
  description: 'The package is valid, and can be built, pushed and run as it is.',
  arguments: {
    name: { summary: 'name of the package: 2 to 43 lower-case letters, digits and -, with a letter at both ends' },
    folder: { summary: 'folder to create; by default the name', isOptional: true, complete: 'files' },
  },
  flags: { version: { type: 'text', placeholder: 'VERSION', default: '1.0.0', summary: 'first version' } },
  example: 'kubectl skyhook package init my-tuning',
  exitCodes: { [exitCodes.refused]: 'the folder exists already and is not empty' },
  isLocal: true,
  run: async (context, { arguments: given, flags }) => {
    const { initPackage } = await import('../package/init.ts')
    return await initPackage(context, given, flags)
  },
})

/** A package folder as an archive with its image. */
export const packageBuild = defineCommand({
  name: 'package build',
  summary: 'build the image of a package, without a container engine',
  description:
    'Writes an OCI archive, which ctr, skopeo and podman read. The same files give the same digest on every machine. ' +
    'The package is validated first.',
  arguments: { folder: { summary: 'folder of the package', complete: 'files' } },
  flags: {
    file: {
      type: 'text',
      short: 'f',
      placeholder: 'FILE',
      summary: 'archive to write; by default NAME-VERSION.tar',
      complete: 'files',
    },
    tag: { type: 'text', short: 't', placeholder: 'REFERENCE', summary: 'name of the image in the archive' },
    arch: { type: 'list', placeholder: 'ARCH', summary: 'architectures: amd64, arm64; by default both' },
  },
  example: 'kubectl skyhook package build my-tuning --file my-tuning.tar',
  isLocal: true,
  run: async (context, { arguments: given, flags }) => {
    const { buildPackage } = await import('../package/image.ts')
    return await buildPackage(context, given, flags)
  },
})

/** A package folder as an image in a registry. */
export const packagePush = defineCommand({
  name: 'package push',
  summary: 'build the image of a package and push it to a registry',
  description:
    'Logs in with what "docker login" or "podman login" stored, credential helpers included, or with the variables ' +
    'REGISTRY_USER, REGISTRY_PASSWORD and REGISTRY_CA. The tag is by default the version of the package. Prints the ' +
    'reference with its digest, for containerSHA.',
  arguments: {
    folder: { summary: 'folder of the package', complete: 'files' },
    reference: { summary: '[host[:port]/]repository[:tag]' },
  },
  flags: {
    arch: { type: 'list', placeholder: 'ARCH', summary: 'architectures: amd64, arm64; by default both' },
    ...registryFlags,
  },
  example: 'kubectl skyhook package push my-tuning registry.example.com/packages/my-tuning',
  isLocal: true,
  run: async (context, { arguments: given, flags }) => {
    const { pushPackage } = await import('../package/image.ts')
    return await pushPackage(context, given, flags)
  },
})

/** The whole life cycle of a package, before it reaches a node. */
export const packageRun = defineCommand({
  name: 'package run',
  summary: 'run the whole life cycle of a package on a throw-away host',
  description:
    'Boots a host with systemd-nspawn; needs Linux and root, but no cluster. Runs apply, config, upgrade, an ' +
    'interrupt, post-interrupt and uninstall. Each is killed in the middle, run to its end and run again, with its ' +
    'check. With --from, a second host is upgraded from an earlier version. After the uninstall it lists what the ' +
    'package left behind: files, kernel settings, units. With --only it does all that to one stage. The host is ' +
    'removed, also after ctrl-C. Kernel settings are copies; kernel arguments, modules and disks are absent. ' +
    'Without a base it prints how to make one.',
  arguments: { folder: { summary: 'folder of the package', complete: 'files' } },
  flags: {
    from: {
      type: 'text',
      placeholder: 'FOLDER',
      summary: 'an earlier version of the package, to upgrade from',
      complete: 'files',
    },
    only: {
      type: 'text',
      placeholder: 'STAGE',
      choices: ['apply', 'config', 'interrupt', 'post-interrupt', 'upgrade', 'uninstall'],
      summary: 'this stage alone: what a node does before it runs once, and nothing runs after it',
    },
    config: { type: 'list', placeholder: 'KEY=FILE', summary: 'a key of configMap, with the content of a file' },
    env: { type: 'list', placeholder: 'NAME=VALUE', summary: 'a variable of env' },
    interrupt: {
      type: 'text',
      placeholder: 'TYPE',
      choices: ['reboot', 'service', 'restartAllServices', 'noop', 'none'],
      default: 'reboot',
      summary: 'interrupt of the package',
    },
    service: { type: 'list', placeholder: 'UNIT', summary: 'what --interrupt service restarts' },
    root: {
      type: 'text',
      placeholder: 'FOLDER',
      summary: 'root folder of the system to boot, not changed; by default /var/lib/machines/skyhook-package-run',
      complete: 'files',
    },
    network: {
      type: 'text',
      placeholder: 'NETWORK',
      choices: ['none', 'host'],
      default: 'none',
      summary: 'none, or host: the network of this machine, for packages that download',
    },
    stepTimeout: {
      type: 'duration',
      placeholder: 'DURATION',
      default: 600_000,
      summary: 'a step that takes longer fails',
    },
    ignore: {
      type: 'list',
      placeholder: 'PATTERN',
      summary:
        'what may be left behind: a file, a folder with its content, a kernel setting or a unit; * and ? as in a shell',
    },
    keep: { type: 'boolean', summary: 'keep the files of the host, and print where they are' },
  },
  example: 'kubectl skyhook package run my-tuning --config greeting.txt=greeting.txt',
  exitCodes: {
    [exitCodes.failed]: 'an act failed, something is left behind, or this machine cannot boot a host',
    [exitCodes.notFound]: 'the package or the base does not exist',
  },
  otherExamples: ['kubectl skyhook package run my-tuning --config greeting.txt=greeting.txt --only config'],
  formats: ['table', 'json'],
  isLocal: true,
  run: async (context, { arguments: given, flags }) => {
    const { runPackage } = await import('../package/run/run-package.ts')
    return await runPackage(context, given, flags)
  },
})

export const skyhookFlag = {
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
