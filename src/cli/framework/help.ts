import type { HelpConfiguration } from 'commander'
import type { Command } from './command.ts'
import { exitCodes, exitCodeTexts, type ExitCode } from './exit-codes.ts'

/** How help is set: lists in the order of the definitions, no word about the program's own help flag. */
export const helpConfiguration: HelpConfiguration = {
  showGlobalOptions: false,
  visibleOptions: (command) => command.options.filter(({ long }) => long !== '--help'),
  subcommandTerm: (command) => command.name(),
}

const common: readonly ExitCode[] = [exitCodes.ok, exitCodes.failed, exitCodes.usage]

/** What follows the flags in a command's help: output formats, an example, the exit codes. */
export function helpAfter({
  example,
  otherExamples = [],
  formats,
  isLocal,
  isAction,
  exitCodes: own = {},
}: Command): string {
  const codes = [...new Set([...common, ...Object.keys(own).map(Number)])].sort((a, b) => a - b) as ExitCode[]
  const globals = [
    formats && `  -o, --output FORMAT  ${formats.join(', ')} (default: ${formats[0]})`,
    isAction && '  --dry-run[=MODE]     client: say what would be done; server: let the API server check it',
    !isLocal && "  kubectl's flags for the connection: see kubectl skyhook --help",
  ].filter((line) => typeof line === 'string')
  return [
    ...(globals.length > 0 ? ['', 'Global options:', ...globals] : []),
    '',
    otherExamples.length === 0 ? 'Example:' : 'Examples:',
    ...[example, ...otherExamples].map((call) => `  ${call}`),
    '',
    'Exit codes:',
    ...codes.map((code) => `  ${code}  ${own[code] ?? exitCodeTexts[code]}`),
  ].join('\n')
}
