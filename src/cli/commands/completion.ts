import { defineCommand } from '../framework/command.ts'
import { exitCodes } from '../framework/command-error.ts'

const program = 'kubectl-skyhook'

export const completion = defineCommand({
  name: 'completion',
  summary: 'print the script that completes commands and names in a shell',
  description:
    'bash: source <(kubectl-skyhook completion bash), with the package bash-completion. zsh: source the output in ' +
    '.zshrc after compinit. fish: kubectl-skyhook completion fish | source. For "kubectl skyhook" itself, kubectl ' +
    'asks the program kubectl_complete-skyhook, which comes with this tool.',
  example: 'kubectl skyhook completion bash',
  arguments: { shell: { summary: 'bash, zsh or fish', choices: ['bash', 'zsh', 'fish'] } },
  isLocal: true,
  run: async ({ stdout }, { arguments: { shell } }) => {
    const script = await scriptOf(shell)
    // The library's script for bash cannot be sourced twice, or beside another program's.
    stdout.write(shell === 'bash' ? script.replaceAll(/^readonly /gm, '') : script)
    return exitCodes.ok
  },
})

/** The library prints its scripts and does not return them. */
async function scriptOf(shell: string): Promise<string> {
  const { RootCommand } = await import('@bomb.sh/tab')
  const { log } = console
  let script = ''
  console.log = (text: string) => {
    script += `${text}\n`
  }
  try {
    new RootCommand().setup(program, program, shell)
  } finally {
    console.log = log
  }
  return script
}
