/** Commands on files, before they are applied: plan, validate. */
import { defineCommand } from '../base/framework/command.ts'
import { CommandError, exitCodes } from '../base/framework/command-error.ts'
import { wrapText } from '../base/output/wrap.ts'
import { registryFlags } from '../base/registry/flags.ts'

/** Shows what an apply of a file would do. */
export const plan = defineCommand({
  name: 'plan',
  summary: 'say what an apply of a file would do on each node, without doing it',
  description:
    'The file has Skyhooks and DeploymentPolicies, which are planned together. A dry run shows whether the API ' +
    'server would accept them; without the right to write, this tool checks its rules itself. The plan makes the ' +
    'decisions of the agents for the current nodes: stages in order, interrupts and why, drains and the pods that ' +
    'would leave or block them. Values of env and configMap are never shown. Registries are not asked whether an ' +
    'image exists: kubectl skyhook validate IMAGE does that. -o markdown is for pull requests.',
  example: 'kubectl skyhook plan -f tuning.yaml',
  flags: {
    filename: {
      type: 'text',
      short: 'f',
      placeholder: 'FILE',
      isRequired: true,
      summary: 'file with Skyhooks and DeploymentPolicies; - is standard input',
      complete: 'files',
    },
    delete: { type: 'boolean', summary: 'plan what kubectl delete -f FILE would do instead' },
    checkEvictions: {
      type: 'boolean',
      summary: 'ask the API server by dry runs whether the pods may be evicted now, each pod alone',
    },
    detailedExitcode: { type: 'boolean', summary: 'exit with 7 if a node would be drained or interrupted' },
  },
  exitCodes: {
    [exitCodes.failed]: 'with --detailed-exitcode: whether nodes would be disrupted is unknown',
    [exitCodes.notFound]: 'no agents are installed',
    [exitCodes.refused]: 'an object would be refused, or you may not read what it needs',
    [exitCodes.wouldDisrupt]: 'with --detailed-exitcode: a node would be disrupted',
  },
  formats: ['table', 'json', 'markdown'],
  async run(context, { flags }) {
    const [{ readManifests }, { planFile }, { filePlanDocument, filePlanText }] = await Promise.all([
      import('../reason/dry-run/manifests.ts'),
      import('../reason/dry-run/plan-file.ts'),
      import('../reason/dry-run/file-plan-output.ts'),
    ])
    const { clock, signal, format, stdout } = context
    const manifests = readManifests(await context.readText(flags.filename), flags.filename)
    const connection = await context.connect()
    const found = await planFile(manifests, {
      transport: connection.transport,
      namespace: await connection.agentNamespace(),
      clock,
      signal,
      isDelete: flags.delete,
      checkEvictions: flags.checkEvictions,
    })
    if (format === 'json') stdout.document(`${JSON.stringify(filePlanDocument(found), null, 2)}\n`)
    else if (format === 'markdown') stdout.write(filePlanText(found, 'markdown'))
    else stdout.write(wrapText(filePlanText(found, 'text'), stdout.columns()))
    if (found.isRefused) return exitCodes.refused
    if (!flags.detailedExitcode || found.disrupts === false) return exitCodes.ok
    if (found.disrupts === true) return exitCodes.wouldDisrupt
    throw new CommandError(
      exitCodes.failed,
      'whether nodes would be disrupted is unknown',
      'run it with the right to list Nodes, or without --detailed-exitcode',
    )
  },
})

/** Checks without a cluster whether Skyhooks and packages would be accepted. */
export const validate = defineCommand({
  name: 'validate',
  summary: 'check Skyhooks, DeploymentPolicies and packages without a cluster',
  description:
    'A file has Skyhooks or DeploymentPolicies in YAML or JSON. A folder is a package, or has packages and YAML ' +
    'files in it. An archive or an image is a package. Packages are read by the loader of the agent. If a Skyhook ' +
    'and a package of it are given, they are checked against each other: name and version of the package are the end ' +
    'of the image and its version in the Skyhook. The API server or an agent would refuse what has errors, but not ' +
    'what has warnings. The table has one line for each finding.',
  arguments: {
    targets: {
      summary: 'files, folders, archives or images; - is standard input',
      isVariadic: true,
      complete: 'files',
    },
  },
  flags: registryFlags,
  example: 'kubectl skyhook validate packages/tuning',
  exitCodes: { [exitCodes.failed]: 'a finding is an error', [exitCodes.notFound]: 'a path or an image does not exist' },
  formats: ['table', 'json', 'github'],
  isLocal: true,
  run: async (context, { arguments: given, flags }) => {
    const { validateTargets } = await import('../validate/validate.ts')
    return await validateTargets(context, given, flags)
  },
})
