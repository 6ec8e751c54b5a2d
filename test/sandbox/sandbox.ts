import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const repository = join(import.meta.dirname, '..', '..')

export type Finished = { readonly status: number; readonly stdout: string; readonly stderr: string }
export type RunOptions = {
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** Handle on one sandbox (test/sandbox/README.md) for tests. Creates nothing by itself. */
export type Sandbox = {
  readonly name: string
  readonly folder: string
  /** Runs `bin/sandbox ARGS`; never throws for a status other than 0. An abort kills it with SIGKILL. */
  run(args: readonly string[], options?: RunOptions): Promise<Finished>
  /** As `run`, but returns the output and throws with it unless the status is 0. */
  must(args: readonly string[], options?: RunOptions): Promise<string>
  /** Runs `kubectl` as administrator, returns the output and throws unless the status is 0. */
  kubectl(args: readonly string[], input?: string): Promise<string>
  /** What `.sandbox/env` exports (KUBECONFIG, REGISTRY, …); throws if the sandbox is not up. */
  env(): Record<string, string>
}

export function sandbox(name: string): Sandbox {
  const folder = join(repository, name === 'default' ? '.sandbox' : `.sandbox-${name}`)
  const run = (args: readonly string[], options: RunOptions = {}): Promise<Finished> =>
    finished(join(repository, 'bin/sandbox'), args, { ...options, env: { ...options.env, SANDBOX: name } })
  const env = (): Record<string, string> => readEnv(readFileSync(join(folder, 'env'), 'utf8'))
  return {
    name,
    folder,
    run,
    env,
    must: async (args, options) => output(await run(args, options), `bin/sandbox ${args.join(' ')}`),
    kubectl: async (args, input) =>
      output(
        await finished('kubectl', args, { env: env(), ...(input === undefined ? {} : { input }) }),
        `kubectl ${args.join(' ')}`,
      ),
  }
}

/** The folder of the cgroup that contains all processes of a sandbox, which is or was up (test/sandbox/cgroups.sh). */
export const cgroupOf = ({ folder }: Sandbox): string => readFileSync(join(folder, 'cgroup'), 'utf8').trim()

/** Never throws for a status other than 0. An abort kills the program with SIGKILL. */
export function finished(program: string, args: readonly string[], options: RunOptions): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      env: { ...process.env, ...options.env },
      killSignal: 'SIGKILL',
      ...(options.signal ? { signal: options.signal } : {}),
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.on('error', (error) => {
      if (error.name !== 'AbortError') reject(error)
    })
    child.on('close', (status) => resolve({ status: status ?? -1, stdout, stderr }))
    child.stdin.on('error', () => undefined) // a program that exits without reading its input
    child.stdin.end(options.input ?? '')
  })
}

function output(result: Finished, what: string): string {
  if (result.status !== 0) throw new Error(`${what} exited with ${result.status}: ${result.stderr}${result.stdout}`)
  return result.stdout
}

/** Reads lines `export NAME='value'`; only the line for PATH has more, `:"$PATH"`, after the quotes. */
function readEnv(text: string): Record<string, string> {
  const env: Record<string, string> = {}
  for (const [, key, value, rest] of text.matchAll(/^export (\w+)='([^']*)'(.*)$/gm)) {
    if (key !== undefined && value !== undefined)
      env[key] = rest === '' ? value : `${value}:${process.env['PATH'] ?? ''}`
  }
  return env
}
