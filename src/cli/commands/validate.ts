import { defineCommand } from '../framework/command.ts'
import { exitCodes } from '../framework/exit-codes.ts'
import { registryFlags } from '../registry/flags.ts'

/** Whether Skyhooks and packages would be accepted, without a cluster. */
export const validate = defineCommand({
  name: 'validate',
  summary: 'check Skyhooks, DeploymentPolicies and packages without a cluster',
  description:
    'A file has Skyhooks or DeploymentPolicies in YAML or JSON. A folder is a package, or has packages and YAML ' +
    'files in it. An archive or an image is a package. Packages are read by the loader of the agent. A Skyhook and ' +
    'a package of it that are given together are checked against each other: name and version of the package are ' +
    'the end of the image and its version in the Skyhook. Errors would be refused by the API server or by an agent; ' +
    'warnings would not. The table has one line for each finding.',
  arguments: {
    targets: {
      summary: 'files, folders, archives or images; - is standard input',
      isVariadic: true,
      complete: 'files',
    },
  },
  flags: registryFlags,
  example: 'kubectl skyhook validate packages/tuning',
  exitCodes: { [exitCodes.failed]: 'a finding is an error', [exitCodes.notFound]: 'nothing is there' },
  formats: ['table', 'json', 'github'],
  isLocal: true,
  run: async (context, { arguments: given, flags }) => {
    const { validateTargets } = await import('../validate/validate.ts')
    return await validateTargets(context, given, flags)
  },
})
