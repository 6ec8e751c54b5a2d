import { defineCommand } from '../framework/command.ts'
import { exitCodes } from '../framework/command-error.ts'
import { registryFlags } from '../registry/flags.ts'

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
