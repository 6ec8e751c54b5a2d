import { defineCommand } from '../framework/command.ts'
import { exitCodes } from '../framework/command-error.ts'
import { connectionHelp } from '../framework/parse.ts'

export const options = defineCommand({
  name: 'options',
  summary: "list kubectl's connection flags, which every command takes",
  example: 'kubectl skyhook options',
  isLocal: true,
  run: async ({ stdout }) => {
    stdout.write(connectionHelp())
    return await Promise.resolve(exitCodes.ok)
  },
})
