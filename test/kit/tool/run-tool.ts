/** `kubectl skyhook` in this process: a call, and what it wrote. */
import { readFile } from 'node:fs/promises'
import { allCommands } from '../../../src/cli/commands/all.ts'
import { runCommandLine } from '../../../src/cli/base/framework/run.ts'
import { createSeededRandom, createVirtualClock } from '../virtual-clock.ts'

export type ToolRun = { readonly code: number; readonly stdout: string; readonly stderr: string }

export type ToolSurroundings = {
  readonly environment?: Readonly<Record<string, string>>
  readonly stdin?: string
}

/** Runs a call that needs no cluster, without a terminal, at a moment at which time stands still. */
export async function runTool(
  argv: readonly string[],
  { environment = {}, stdin = '' }: ToolSurroundings = {},
): Promise<ToolRun> {
  let [stdout, stderr] = ['', '']
  const output = (write: (text: string) => void) => ({
    write,
    isTerminal: false,
    hasColor: false,
    columns: () => undefined,
  })
  const code = await runCommandLine(
    argv,
    allCommands,
    {
      stdout: output((text) => (stdout += text)),
      stderr: output((text) => (stderr += text)),
      stdin: { isTerminal: false, readLine: () => Promise.resolve(undefined), readAll: () => Promise.resolve(stdin) },
      environment: { HOME: '/nonexistent', ...environment }, // no logins of whoever runs the test
      clock: createVirtualClock(),
      random: createSeededRandom(1),
      signal: new AbortController().signal,
      readFile: (path) => readFile(path, 'utf8'),
    },
    {
      connect: () => Promise.reject(new Error('this call needs no cluster')),
      contextNames: () => Promise.resolve([]),
    },
  )
  return { code, stdout, stderr }
}
