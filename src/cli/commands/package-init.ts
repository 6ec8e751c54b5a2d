import { defineCommand } from '../framework/command.ts'
import { exitCodes } from '../framework/command-error.ts'

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
