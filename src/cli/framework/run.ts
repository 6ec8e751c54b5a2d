import { messageOf } from '../../schemas/json.ts'
import type { Connection } from '../connection/connection.ts'
import type { Command, Context, OutputFormat } from './command.ts'
import { usageError } from './command-error.ts'
import { complete } from './complete.ts'
import { confirm } from './confirm.ts'
import { exitCodeOf } from './exit-code-of.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'
import type { Machine } from './machine.ts'
import { createTextOutput } from './text-output.ts'
import { type Call, parseCall, type GlobalFlags } from './parse.ts'
import { describeError } from './describe-error.ts'

/** Opens the API server that these flags and this machine's kubeconfig name. */
export type Connect = (flags: GlobalFlags, machine: Machine) => Promise<Connection>

export type Ports = {
  readonly connect: Connect
  /** Names of the kubeconfig's contexts. */
  readonly contextNames: (flags: GlobalFlags, machine: Machine) => Promise<readonly string[]>
}

/** The call for completions of kubectl, cobra and the scripts of `completion`. */
const isCompletion = ([first, second]: readonly string[]): boolean =>
  first === '__complete' || (first === 'complete' && second === '--')

/** One call, from its text to its exit code. Never throws: failures are on stderr. */
export async function runCommandLine(
  argv: readonly string[],
  commands: readonly Command[],
  given: Machine,
  { connect, contextNames }: Ports,
): Promise<ExitCode> {
  const stdout = createTextOutput(given.stdout)
  const stderr = createTextOutput(given.stderr)
  const machine = { ...given, stdout, stderr }
  let connection: Promise<Connection> | undefined
  try {
    if (isCompletion(argv)) {
      await complete(argv.slice(argv[0] === 'complete' ? 2 : 1), commands, machine, {
        connect: async (flags) => await connect(flags, machine),
        contextNames: async (flags) => await contextNames(flags, machine),
      })
      return exitCodes.ok
    }
    const result = parseCall(argv, commands)
    if (result.outcome === 'help') {
      machine.stdout.write(result.text)
      return exitCodes.ok
    }
    const context = contextOf(result, machine, () => (connection ??= connect(result.globals, machine)))
    return await result.command.run(context, result.input)
  } catch (error) {
    if (machine.signal.aborted) return exitCodes.interrupted
    machine.stderr.write(`${describeError(error)}\n`)
    return exitCodeOf(error)
  } finally {
    const opened = await connection?.catch(() => undefined)
    opened?.transport.close()
  }
}

function contextOf(
  { command, input, globals }: Call,
  machine: Machine & Pick<Context, 'stdout' | 'stderr'>,
  connect: () => Promise<Connection>,
): Context {
  const { stdout, stderr, environment, clock, random, signal } = machine
  return {
    stdout,
    stderr,
    environment,
    clock,
    random,
    signal,
    connect,
    format: formatOf(command, globals.output),
    dryRun: globals.dryRun,
    async confirm(question) {
      if (input.flags['yes'] !== true && globals.dryRun === 'none') await confirm(machine, question)
    },
    verbose(message) {
      if (globals.verbose) stderr.write(`${message}\n`)
    },
    async readText(path) {
      if (path === '-') return await machine.stdin.readAll()
      try {
        return await machine.readFile(path)
      } catch (error) {
        throw usageError(`cannot read ${path}: ${messageOf(error)}`)
      }
    },
  }
}

function formatOf({ name, formats }: Command, text: string | undefined): OutputFormat {
  const [first = 'table'] = formats ?? []
  if (text === undefined) return first
  const found = formats?.find((one) => one === text)
  if (found !== undefined) return found
  if (formats === undefined) throw usageError(`"${name}" has one output format and does not take --output`)
  throw usageError(`--output must be one of ${formats.join(', ')}, got "${text}"`)
}
