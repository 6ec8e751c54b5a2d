import { spawn } from 'node:child_process'

export type ProgramEnd = { readonly code: number; readonly stdout: string; readonly stderr: string }

const maxOutputChars = 1 << 20

/**
 * Runs a program of PATH with a text as its input, and waits for its end. Its output is kept up to a limit. Rejects
 * when it cannot be started, and when the signal aborts, which kills it.
 */
export async function runProgram(
  program: string,
  parameters: readonly string[],
  input: string,
  signal: AbortSignal,
): Promise<ProgramEnd> {
  const child = spawn(program, parameters, { stdio: ['pipe', 'pipe', 'pipe'], signal, killSignal: 'SIGKILL' })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout = `${stdout}${text}`.slice(0, maxOutputChars)))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = `${stderr}${text}`.slice(0, maxOutputChars)))
  child.stdin.on('error', () => undefined) // the program may end before it reads
  child.stdin.end(input)
  return await new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code: code ?? 128, stdout, stderr }))
  })
}
