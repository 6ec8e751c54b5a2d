import { skyhooksPath, policiesPath } from '../../../schemas/api.ts'
import { timeoutSignal } from '../../../schemas/clock.ts'
import type { Command, CompletionSource, Connection, Flag, Flags, Machine } from './command.ts'
import { type GlobalFlags, parseGlobals } from './parse.ts'
import { longName, actionFlags, connectionFlags, generalFlags, groups } from './flags.ts'

/** A person waits for it after each press of tab. */
const timeoutMs = 1_500

type Listed = { readonly items?: readonly { readonly metadata: { readonly name: string }; readonly spec?: Listing }[] }
type Listing = { readonly packages?: Readonly<Record<string, unknown>> }

type CompletionPorts = {
  readonly connect: (flags: GlobalFlags) => Promise<Connection>
  readonly contextNames: (flags: GlobalFlags) => Promise<readonly string[]>
}

const paths = {
  skyhooks: skyhooksPath,
  packages: skyhooksPath,
  deploymentPolicies: policiesPath,
  nodes: '/api/v1/nodes',
  namespaces: '/api/v1/namespaces',
} as const satisfies Partial<Record<CompletionSource, string>>

/** Writes what may follow the typed text. Silent if a cluster does not answer in time: a shell shows no errors. */
export async function complete(
  typed: readonly string[],
  commands: readonly Command[],
  machine: Machine,
  ports: CompletionPorts,
): Promise<void> {
  const namesOf = async (source: Exclude<CompletionSource, 'files'>): Promise<readonly string[]> => {
    try {
      const flags = parseGlobals(typed.slice(0, -1))
      return source === 'contexts' ? await ports.contextNames(flags) : await namesInCluster(source, flags)
    } catch {
      return []
    }
  }
  const namesInCluster = async (source: keyof typeof paths, flags: GlobalFlags): Promise<readonly string[]> => {
    const { transport } = await ports.connect(flags)
    const signal = AbortSignal.any([machine.signal, timeoutSignal(machine.clock, timeoutMs)])
    try {
      const { items = [] } = await transport.json<Listed>('GET', paths[source], { query: { limit: 500 }, signal })
      if (source !== 'packages') return items.map(({ metadata }) => metadata.name).sort()
      return [...new Set(items.flatMap(({ spec }) => Object.keys(spec?.packages ?? {})))].sort()
    } finally {
      transport.close()
    }
  }
  machine.stdout.write(formatSuggestions(await suggest(typed, commands, namesOf)))
}

/** Suggestions for the completion of shells, in the protocol of kubectl and cobra. */
type Suggestion = { readonly value: string; readonly description: string }

type Suggestions = {
  readonly suggestions: readonly Suggestion[]
  /** No suggestion of ours; a file may fit. */
  readonly mayBeFile: boolean
}

/** Names that only a cluster or a kubeconfig knows. */
type NamesOf = (source: Exclude<CompletionSource, 'files'>, typed: readonly string[]) => Promise<readonly string[]>

const nothing: Suggestions = { suggestions: [], mayBeFile: false }

/** `typed`: everything after the program's name. The last text is at the cursor, and may be empty. */
export async function suggest(
  typed: readonly string[],
  commands: readonly Command[],
  namesOf: NamesOf,
): Promise<Suggestions> {
  const last = typed.at(-1) ?? ''
  const before = typed.slice(0, -1)
  const position = positionOf(before, commands)
  const { command, flags, path } = position

  const [, name, started] = /^--([a-z-]+)=(.*)$/s.exec(last) ?? []
  const flag = name === undefined ? position.openFlag : valued(flagNamed(flags, name))
  if (flag !== undefined) return await valuesOf(flag, started ?? last, typed, namesOf)
  if (name !== undefined) return nothing
  if (last.startsWith('-') && !position.isAfterDashes) return flagSuggestions(flags, last)
  if (command === undefined) return commandSuggestions(commands, path, last)
  const all = Object.values(command.arguments ?? {})
  const argument = all[Math.min(position.argumentCount, all.length - 1)]
  const isFull = position.argumentCount >= all.length && argument?.isVariadic !== true
  return argument === undefined || isFull ? nothing : await valuesOf(argument, last, typed, namesOf)
}

/** The lines that a shell's script reads: one per suggestion, then a directive. */
export function formatSuggestions({ suggestions, mayBeFile }: Suggestions): string {
  const noFileCompletion = 4
  const lines = suggestions.map(({ value, description }) => (description === '' ? value : `${value}\t${description}`))
  return `${[...lines, `:${mayBeFile ? 0 : noFileCompletion}`].join('\n')}\n`
}

type ValuedFlag = Exclude<Flag, { readonly type: 'boolean' }>

const valued = (flag: Flag | undefined): ValuedFlag | undefined => (flag?.type === 'boolean' ? undefined : flag)

type Position = {
  /** The command words so far. */
  readonly path: readonly string[]
  readonly command: Command | undefined
  readonly flags: Flags
  readonly argumentCount: number
  /** A flag whose value is next. */
  readonly openFlag: ValuedFlag | undefined
  readonly isAfterDashes: boolean
}

function positionOf(before: readonly string[], commands: readonly Command[]): Position {
  let path: readonly string[] = []
  let command: Command | undefined
  let argumentCount = 0
  let openFlag: ValuedFlag | undefined
  let isAfterDashes = false
  for (const text of before) {
    if (openFlag !== undefined) openFlag = undefined
    else if (text === '--') isAfterDashes = true
    else if (text.startsWith('-') && !isAfterDashes) openFlag = openedBy(flagsOf(command), text)
    else if (command !== undefined) argumentCount++
    else {
      path = [...path, canonical(text, path, commands)]
      command = commands.find((one) => one.name === path.join(' '))
    }
  }
  return { path, command, flags: flagsOf(command), argumentCount, openFlag, isAfterDashes }
}

/** The name of a command or group whose alias may have been typed. */
function canonical(text: string, path: readonly string[], commands: readonly Command[]): string {
  const group = path.length === 0 && Object.entries(groups).find(([, { aliases }]) => aliases.includes(text))
  if (group) return group[0]
  const prefix = [...path, ''].join(' ')
  const aliased = commands.find((one) => one.name.startsWith(prefix) && one.aliases?.includes(text))
  return aliased?.name.split(' ').at(-1) ?? text
}

const flagsOf = (command: Command | undefined): Flags => ({
  ...command?.flags,
  ...(command?.isAction && actionFlags),
  ...(command === undefined || command.isAction ? generalFlags : withoutDryRun),
  ...connectionFlags,
  ...(command?.formats && { output: { ...generalFlags.output, choices: command.formats } }),
})

/** Only commands that change something take it. */
const withoutDryRun: Flags = Object.fromEntries(Object.entries(generalFlags).filter(([name]) => name !== 'dryRun'))

const flagNamed = (flags: Flags, name: string): Flag | undefined =>
  Object.entries(flags).find(([key, flag]) => longName(key) === name || flag.aliases?.includes(name))?.[1]

function openedBy(flags: Flags, text: string): ValuedFlag | undefined {
  if (text.includes('=')) return undefined
  const flag = text.startsWith('--')
    ? flagNamed(flags, text.slice(2))
    : text.length === 2
      ? Object.values(flags).find(({ short }) => short === text[1])
      : undefined
  const isBare = flag?.type === 'text' && flag.bare !== undefined
  return isBare ? undefined : valued(flag)
}

type Valued = { readonly choices?: readonly string[]; readonly complete?: CompletionSource }

async function valuesOf(
  valued: Valued,
  started: string,
  typed: readonly string[],
  namesOf: NamesOf,
): Promise<Suggestions> {
  const { choices, complete } = valued
  if (complete === 'files') return { suggestions: [], mayBeFile: true }
  const values = choices ?? (complete === undefined ? [] : await namesOf(complete, typed))
  const fitting = values.filter((value) => value.startsWith(started))
  return { suggestions: fitting.map((value) => ({ value, description: '' })), mayBeFile: false }
}

function flagSuggestions(flags: Flags, started: string): Suggestions {
  const suggestions = Object.entries(flags)
    .map(([key, { summary }]) => ({ value: `--${longName(key)}`, description: summary }))
    .filter(({ value }) => value.startsWith(started))
  return { suggestions, mayBeFile: false }
}

function commandSuggestions(commands: readonly Command[], path: readonly string[], started: string): Suggestions {
  const found = new Map<string, string>()
  for (const { name, summary } of commands) {
    const parts = name.split(' ')
    const next = parts[path.length]
    if (next === undefined || path.some((part, index) => parts[index] !== part) || !next.startsWith(started)) continue
    found.set(next, parts.length > path.length + 1 ? (groups[next]?.summary ?? '') : summary)
  }
  const suggestions = [...found].map(([value, description]) => ({ value, description }))
  return { suggestions, mayBeFile: false }
}
