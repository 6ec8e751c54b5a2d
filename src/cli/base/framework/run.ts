import { messageOf } from '../../../schemas/json.ts'
import type { Command, Connection, Context, OutputFormat, TextOutput, TextStream, Machine } from './command.ts'
import { usageError, exitCodes, type ExitCode, exitCodeOf, describeError, refusedError } from './command-error.ts'
import { complete } from './complete.ts'
import { type Call, parseCall, type GlobalFlags } from './parse.ts'
import { clip, harmlessJson, plainText } from '../../../schemas/plain-text.ts'
import type { Painter } from './paint.ts'

/** Opens the API server that these flags and this machine's kubeconfig name. */
export type Connect = (flags: GlobalFlags, machine: Machine) => Promise<Connection>

type Ports = {
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

/**
 * Asks on stderr, so that scripts read only the output from standard output. Returns after y or yes. Throws a refusal
 * after anything else, and immediately without a terminal.
 */
async function confirm({ stdin, stderr, signal }: Machine, question: string): Promise<void> {
  if (!stdin.isTerminal || !stderr.isTerminal)
    throw refusedError(`not confirmed: ${question}`, 'no terminal to ask for confirmation: add --yes')
  stderr.write(`${question} [y/N]: `)
  const answer = await stdin.readLine(signal)
  if (answer === undefined) stderr.write('\n')
  if (!/^(y|yes)$/i.test(answer?.trim() ?? '')) throw refusedError('canceled, nothing was changed')
}

/** Twice the longest line of a step's output. */
const maxLineLength = 16 * 1024
/** Cursor to the upper left, and clear what is below: no line of the scroll-back is lost. */
const redraw = '\u001B[H\u001B[J'

/**
 * Names and messages come from others. Characters that a terminal would obey, or that disguise a text, do not get
 * through.
 */
export function createTextOutput(stream: TextStream): TextOutput {
  const clean = (text: string, paint?: Painter): string => {
    const lines = withShortLines(plainText(text))
    return paint !== undefined && stream.hasColor ? lines.split('\n').map(paint).join('\n') : lines
  }
  return {
    isTerminal: stream.isTerminal,
    hasColor: stream.hasColor,
    columns: () => stream.columns(),
    write: (text, paint) => stream.write(clean(text, paint)),
    document: (text) => stream.write(harmlessJson(text)),
    screen: (text, paint) => stream.write(`${redraw}${clean(text, paint)}`),
  }
}

const withShortLines = (text: string): string =>
  text.length <= maxLineLength
    ? text
    : text
        .split('\n')
        .map((line) => clip(line, maxLineLength))
        .join('\n')
