import { Help, type HelpConfiguration } from 'commander'
import type { Command } from './command.ts'
import { exitCodes, exitCodeTexts, type ExitCode } from './exit-codes.ts'

/**
 * The layout of help: lists in the order of the definitions, no mention of the program's own help flag, commands first.
 */
export const helpConfiguration: HelpConfiguration = {
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
export const programHelpAfter = [
  '  --version              show the version of this tool',
  '',
  '"kubectl skyhook COMMAND --help" has an example and the exit codes of a command,',
  '"kubectl skyhook options" the flags for the connection to the cluster.',
].join('\n')

/** The flags of a help, under a title of its own. */
export const optionsIn = (help: string): string =>
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
export function helpAfter(command: Command): string {
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
