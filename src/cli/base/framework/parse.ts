/** Converts the text of a call to a command with its input. The only file that knows the argument library. */
import {
  Command as Parser,
  CommanderError,
  Option,
  Argument as ParserArgument,
  Help,
  type HelpConfiguration,
} from 'commander'
import { formatDuration } from '../../../schemas/time.ts'
import type { AnyInput, Argument, Command, Flag, Flags, FlagValues } from './command.ts'
import { usageError, exitCodes, exitCodeTexts, type ExitCode } from './command-error.ts'
import { longName, parseFlagValue, actionFlags, connectionFlags, generalFlags, groups } from './flags.ts'
import { version } from '../../../schemas/version.ts'

const programName = 'kubectl skyhook'

const programSummary = 'See, understand, plan and change what skyhookd does on the nodes of a cluster'

export type GlobalFlags = FlagValues<typeof generalFlags & typeof connectionFlags>

export type Call = {
  readonly command: Command
  readonly input: AnyInput
  readonly globals: GlobalFlags
}

type ParseResult =
  | ({ readonly outcome: 'call' } & Call)
  /** The requested help. */
  | { readonly outcome: 'help'; readonly text: string }

/** Throws a usage error that names the mistake and the command whose help is relevant. */
export function parseCall(argv: readonly string[], commands: readonly Command[]): ParseResult {
  // after a command it may be a flag of that: `package init NAME --version 2.0.0`
  if (argv[0] === '--version') return { outcome: 'help', text: `${programName} ${version}\n` }
  let call: Omit<Call, 'globals'> | undefined
  let help = ''
  const keep = (text: string): void => void (help += text)
  const program = buildProgram(commands, (command, input) => {
    call = { command, input }
  })
  for (const one of everyParser(program)) one.configureOutput({ writeOut: keep, writeErr: keep })
  try {
    program.parse(normalizeArgv(argv, commands), { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0 || error.code === 'commander.help') return { outcome: 'help', text: help }
      throw usageError(error.message.replace(/^error: /, ''), `see ${helpOf(program, argv)}`)
    }
    throw error
  }
  if (call === undefined) return { outcome: 'help', text: help }
  const globals = valuesOf(program, { ...generalFlags, ...connectionFlags }) as GlobalFlags
  refuseNeedlessConnection(call, globals)
  refuseDryRunOfNothing(call, globals)
  return { outcome: 'call', ...call, globals }
}

/** The global flags at the start of a call, even if it is invalid; unreadable flags are left out. */
export function parseGlobals(argv: readonly string[]): GlobalFlags {
  const parser = new Parser().exitOverride().allowUnknownOption().allowExcessArguments()
  parser.configureOutput({ writeOut: () => {}, writeErr: () => {} }).helpOption(false)
  addFlags(parser, generalFlags)
  addFlags(parser, connectionFlags)
  parser.parse(normalizeArgv(argv, []), { from: 'user' })
  return valuesOf(parser, { ...generalFlags, ...connectionFlags }) as GlobalFlags
}

/** The connection flags. No other help shows them: there are as many as commands. */
export function connectionHelp(): string {
  const parser = new Parser(programName).configureHelp(helpConfiguration).helpOption(false)
  addFlags(parser, connectionFlags)
  return optionsIn(parser.helpInformation())
}

/** A user who names a cluster means it, and must not be shown something else. */
function refuseNeedlessConnection({ command, input }: Omit<Call, 'globals'>, globals: GlobalFlags): void {
  const replacing = Object.entries(command.flags ?? {}).find(
    ([key, flag]) => 'replacesCluster' in flag && input.flags[key] !== undefined,
  )
  if (replacing === undefined) return
  const isGiven = (value: unknown): boolean =>
    Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false
  const given = Object.keys(connectionFlags).find((key) => isGiven(globals[key as keyof GlobalFlags]))
  if (given === undefined) return
  const [from, needless] = [replacing[0], given].map((key) => `--${longName(key)}`)
  throw usageError(`${from} needs no cluster, got also ${needless}`, `leave out ${needless}, or ${from}`)
}

/** A user who asks for a dry run must not get the real one. */
function refuseDryRunOfNothing({ command: { name, isAction } }: Omit<Call, 'globals'>, { dryRun }: GlobalFlags): void {
  if (isAction || dryRun === 'none') return
  throw usageError(`"${name}" changes nothing in the cluster and does not take --dry-run`, 'leave out --dry-run')
}

type OnCall = (command: Command, input: AnyInput) => void

function buildProgram(commands: readonly Command[], onCall: OnCall): Parser {
  const program = new Parser(programName)
    .description(programSummary)
    .usage('COMMAND [flags]')
    .exitOverride()
    .configureHelp(helpConfiguration)
    .helpCommand('help [command]', 'show the help of a command')
    .helpOption('-h, --help', 'show the help')
  addFlags(program, generalFlags)
  addFlags(program, connectionFlags, { isHidden: true })
  program.addHelpText('after', programHelpAfter)
  for (const command of commands) {
    const argv = command.name.split(' ')
    const parser = parserOf(program, argv.slice(0, -1))
      .command(argv.at(-1) ?? '')
      .aliases(command.aliases ?? [])
      .summary(command.summary)
      .description([command.summary, command.description].filter(Boolean).join('.\n\n'))
    parser.addHelpText('after', helpAfter(command))
    addFlags(parser, { ...command.flags, ...(command.isAction && actionFlags) })
    for (const [name, argument] of Object.entries(command.arguments ?? {}))
      parser.addArgument(argumentOf(name, argument))
    parser.action(() => onCall(command, inputOf(command, parser)))
  }
  return program
}

/** The parser of a group of commands, made by its first command. */
function parserOf(program: Parser, argv: readonly string[]): Parser {
  let parser = program
  for (const word of argv) {
    const { summary, aliases } = groups[word] ?? { summary: '', aliases: [] }
    parser =
      parser.commands.find((one) => one.name() === word) ??
      parser.command(word).aliases(aliases).summary(summary).description(summary).usage('COMMAND [flags]')
  }
  return parser
}

/** `isHidden`: the help does not list them. */
function addFlags(parser: Parser, flags: Flags, { isHidden = false } = {}): void {
  for (const [key, flag] of Object.entries(flags)) parser.addOption(optionOf(key, flag).hideHelp(isHidden))
}

function optionOf(key: string, flag: Flag): Option {
  const short = flag.short === undefined ? '' : `-${flag.short}, `
  if (flag.type === 'boolean') return new Option(`${short}--${longName(key)}`, flag.summary)
  const option = new Option(`${short}--${longName(key)} <${flag.placeholder}>`, flag.summary).argParser(
    (text: string, earlier: unknown) =>
      // the default is not an earlier value: a list has none
      parseFlagValue(key, flag, text, Array.isArray(earlier) ? (earlier as string[]) : undefined),
  )
  if (flag.isRequired) option.makeOptionMandatory()
  if ('default' in flag && flag.default !== undefined)
    option.default(flag.default, flag.type === 'duration' ? formatDuration(flag.default) : String(flag.default))
  return option
}

function argumentOf(name: string, { summary, isOptional, isVariadic, choices }: Argument): ParserArgument {
  const text = `${longName(name).toUpperCase()}${isVariadic ? '...' : ''}`
  const argument = new ParserArgument(isOptional ? `[${text}]` : `<${text}>`, summary)
  return choices === undefined ? argument : argument.choices(choices)
}

function inputOf(command: Command, parser: Parser): AnyInput {
  const names = Object.keys(command.arguments ?? {})
  const values = parser.processedArgs as (string | string[] | undefined)[]
  return {
    arguments: Object.fromEntries(names.map((name, index) => [name, values[index]])),
    flags: valuesOf(parser, { ...command.flags, ...(command.isAction && actionFlags) }),
  }
}

function valuesOf(parser: Parser, flags: Flags): AnyInput['flags'] {
  const options = parser.opts<Record<string, AnyInput['flags'][string]>>()
  const empty = { boolean: false, list: [], text: undefined, integer: undefined, duration: undefined }
  return Object.fromEntries(Object.entries(flags).map(([key, { type }]) => [key, options[key] ?? empty[type]]))
}

function everyParser(parser: Parser): Parser[] {
  return [parser, ...parser.commands.flatMap(everyParser)]
}

/** The deepest command that the call names, even if the call is invalid. */
function namedParser(program: Parser, argv: readonly string[]): Parser {
  let parser = program
  for (const word of argv.filter((one) => !one.startsWith('-'))) {
    const next = parser.commands.find((one) => one.name() === word || one.aliases().includes(word))
    if (next === undefined) return parser
    parser = next
  }
  return parser
}

function helpOf(program: Parser, argv: readonly string[]): string {
  const names: string[] = []
  for (let parser: Parser | null = namedParser(program, argv); parser !== null; parser = parser.parent)
    names.unshift(parser.name())
  return `${names.join(' ')} --help`
}

/**
 * Rewrites the spellings of a flag that kubectl's users know to the one that the parser knows: `-o=json`, `--yes=true`,
 * `--yes=false`, other names of a flag, and a flag whose value is optional.
 */
function normalizeArgv(argv: readonly string[], commands: readonly Command[]): string[] {
  const known = knownFlags([generalFlags, connectionFlags, actionFlags, ...commands.map(({ flags }) => flags ?? {})])
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length
  return [...argv.slice(0, end).flatMap((word) => normalizeWord(word, known)), ...argv.slice(end)]
}

type KnownFlags = {
  readonly booleans: ReadonlySet<string>
  /** Other long names → the long name. */
  readonly aliases: ReadonlyMap<string, string>
  /** Letters of boolean flags → the long name. */
  readonly letters: ReadonlyMap<string, string>
  /** Long name → value of the flag without one. */
  readonly bare: ReadonlyMap<string, string>
}

function knownFlags(all: readonly Flags[]): KnownFlags {
  const flags = all.flatMap((some) => Object.entries(some)).map(([key, flag]) => ({ name: longName(key), flag }))
  const booleans = flags.filter(({ flag }) => flag.type === 'boolean')
  return {
    booleans: new Set(booleans.map(({ name }) => name)),
    aliases: new Map(flags.flatMap(({ name, flag }) => (flag.aliases ?? []).map((alias) => [alias, name]))),
    letters: new Map(booleans.flatMap(({ name, flag }) => (flag.short === undefined ? [] : [[flag.short, name]]))),
    bare: new Map(
      flags.flatMap(({ name, flag }) => (flag.type === 'text' && flag.bare !== undefined ? [[name, flag.bare]] : [])),
    ),
  }
}

function normalizeWord(word: string, known: KnownFlags): readonly string[] {
  const [, letter = '', letterValue = ''] = /^-([A-Za-z])=(.*)$/s.exec(word) ?? []
  if (letter !== '') {
    const name = known.letters.get(letter)
    return name === undefined ? [`-${letter}${letterValue}`] : booleanWord(name, letterValue)
  }
  const [, written, value] = /^--([a-z][a-z-]*)(?:=(.*))?$/s.exec(word) ?? []
  if (written === undefined) return [word]
  const name = known.aliases.get(written) ?? written
  if (value !== undefined) return known.booleans.has(name) ? booleanWord(name, value) : [`--${name}=${value}`]
  const bare = known.bare.get(name)
  return [bare === undefined ? `--${name}` : `--${name}=${bare}`]
}

/** Any other value stays, and the parser refuses it. */
function booleanWord(name: string, value: string): readonly string[] {
  if (value === 'false') return []
  return [value === 'true' ? `--${name}` : `--${name}=${value}`]
}

/**
 * The layout of help: lists in the order of the definitions, no mention of the program's own help flag, commands first.
 */
const helpConfiguration: HelpConfiguration = {
  showGlobalOptions: false,
  visibleOptions: (command) => command.options.filter(({ long, hidden }) => long !== '--help' && !hidden),
  subcommandTerm: (command) => command.name(),
  formatHelp(command, helper) {
    const sections = Help.prototype.formatHelp.call(helper, command, helper).trimEnd().split('\n\n')
    const isOptions = (section: string): boolean => section.startsWith(optionsTitle)
    return [...sections.filter((one) => !isOptions(one)), ...sections.filter(isOptions), ''].join('\n\n').slice(0, -1)
  },
}

const optionsTitle = 'Options:'

/** The end of the program's help, after the flags. */
const programHelpAfter = [
  '  --version              show the version of this tool',
  '',
  '"kubectl skyhook COMMAND --help" has an example and the exit codes of a command,',
  '"kubectl skyhook options" the flags for the connection to the cluster.',
].join('\n')

/** The flags of a help, under a title of its own. */
const optionsIn = (help: string): string =>
  help.slice(help.indexOf(optionsTitle)).replace(optionsTitle, 'Every command that asks a cluster takes:\n')

/** Any command can end with these. */
const common: readonly ExitCode[] = [exitCodes.ok, exitCodes.failed, exitCodes.usage, exitCodes.interrupted]

/** What a refusal means for a command that asks the API server. */
const refusalTexts = {
  reading: 'you may not read what it needs',
  acting: 'not confirmed, or refused by the API server',
} as const

/** Every exit code of a command, in order, with its meaning there. */
export function exitCodesOf({
  isLocal,
  isAction,
  exitCodes: own,
}: Pick<Command, 'isLocal' | 'isAction' | 'exitCodes'>): ReadonlyMap<ExitCode, string> {
  const texts: Partial<Record<ExitCode, string | null>> = {
    ...Object.fromEntries(common.map((code) => [code, exitCodeTexts[code]])),
    ...(!isLocal && { [exitCodes.refused]: refusalTexts[isAction ? 'acting' : 'reading'] }),
    ...own,
  }
  const entries = Object.entries(texts).flatMap(([code, text]) =>
    text === null ? [] : [[Number(code) as ExitCode, text] as const],
  )
  return new Map(entries.toSorted(([one], [other]) => one - other))
}

/** The end of a command's help, after the flags: output formats, an example, the exit codes. */
function helpAfter(command: Command): string {
  const { example, otherExamples = [], formats, isLocal, isAction } = command
  const globals = [
    formats && `  -o, --output FORMAT  ${formats.join(', ')} (default: ${formats[0]})`,
    isAction && '  --dry-run[=MODE]     client: print what would be done; server: let the API server check it',
    !isLocal && "  kubectl's flags for the connection: see kubectl skyhook options",
  ].filter((line) => typeof line === 'string')
  return [
    ...(globals.length > 0 ? ['', 'Global options:', ...globals] : []),
    '',
    otherExamples.length === 0 ? 'Example:' : 'Examples:',
    ...[example, ...otherExamples].map((call) => `  ${call}`),
    '',
    'Exit codes:',
    ...[...exitCodesOf(command)].map(([code, text]) => `  ${String(code).padEnd(3)}  ${text}`),
  ].join('\n')
}
