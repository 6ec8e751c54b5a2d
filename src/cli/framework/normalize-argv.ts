import type { Command, Flags } from './command.ts'
import { longName } from './flag-values.ts'
import { actionFlags, connectionFlags, generalFlags } from './global-flags.ts'

/**
 * Rewrites the spellings of a flag that kubectl's users know to the one that the parser knows: `-o=json`, `--yes=true`,
 * `--yes=false`, other names of a flag, and a flag whose value is optional.
 */
export function normalizeArgv(argv: readonly string[], commands: readonly Command[]): string[] {
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
