/**
 * A command of `kubectl skyhook`: a value with its arguments, flags, help and action. The parser, the help texts, the
 * completion and the tests of examples all read it.
 */
import type { KubeTransport } from '../../../kube/transport.ts'
import type { Clock, Random } from '../../../schemas/clock.ts'
import type { ExitCode } from './command-error.ts'
import type { Painter } from './paint.ts'

/** Where a value's completions come from. `files`: the shell completes. The others need a cluster or a kubeconfig. */
export type CompletionSource =
  | 'skyhooks'
  | 'nodes'
  | 'packages'
  | 'deploymentPolicies'
  | 'namespaces'
  | 'contexts'
  | 'files'

export type Argument = {
  readonly summary: string
  readonly isOptional?: true
  /** Only the last argument: takes all the rest. */
  readonly isVariadic?: true
  readonly choices?: readonly string[]
  readonly complete?: CompletionSource
}

type FlagBase = {
  readonly summary: string
  /** One letter. */
  readonly short?: string
  /** More long names, without dashes. */
  readonly aliases?: readonly string[]
}

type ValueFlag = FlagBase & {
  /** The placeholder of the value in the help, such as `NAME`. */
  readonly placeholder: string
  readonly isRequired?: true
  readonly complete?: CompletionSource
  /** With it the command asks no cluster: flags for the connection are refused beside it. */
  readonly replacesCluster?: true
}

export type Flag =
  | (FlagBase & { readonly type: 'boolean' })
  | (ValueFlag & {
      readonly type: 'text'
      readonly choices?: readonly string[]
      readonly default?: string
      /** The value of the flag without one; a value then needs `=`, as in `--dry-run=server`. */
      readonly bare?: string
    })
  /** May be repeated; commas separate too. */
  | (ValueFlag & { readonly type: 'list' })
  | (ValueFlag & { readonly type: 'integer'; readonly default?: number; readonly minimum?: number })
  /** Such as `90s`, `5m`, `1h30m`; a number alone counts seconds. The value is in milliseconds. */
  | (ValueFlag & { readonly type: 'duration'; readonly default?: number })

type Arguments = Readonly<Record<string, Argument>>
export type Flags = Readonly<Record<string, Flag>>

type Absent<D> = D extends { readonly isRequired: true } | { readonly default: string | number } ? never : undefined

type FlagValue<F> = F extends { readonly type: 'boolean' }
  ? boolean
  : F extends { readonly type: 'list' }
    ? readonly string[]
    : F extends { readonly type: 'integer' | 'duration' }
      ? number | Absent<F>
      : F extends { readonly type: 'text'; readonly choices: readonly (infer C)[] }
        ? C | Absent<F>
        : string | Absent<F>

type ArgumentValue<A> = A extends { readonly isVariadic: true }
  ? readonly string[]
  : A extends { readonly isOptional: true }
    ? string | undefined
    : string

/** The values of a call, by the names of the definitions: the flag `skipBatchReset` is `--skip-batch-reset`. */
type Input<A, F> = {
  readonly arguments: { readonly [K in keyof A]: ArgumentValue<A[K]> }
  readonly flags: { readonly [K in keyof F]: FlagValue<F[K]> }
}

export type OutputFormat = 'table' | 'wide' | 'json' | 'yaml' | 'name' | 'markdown' | 'github'
type DryRun = 'none' | 'client' | 'server'

/** Where text goes, as it is. */
export type TextStream = {
  write(text: string): void
  readonly isTerminal: boolean
  /** A terminal, and neither NO_COLOR nor TERM=dumb. Color alone never shows a state. */
  readonly hasColor: boolean
  /** The terminal's current width; undefined for a pipe. */
  columns(): number | undefined
}

/** Text for a person or a pipe. Text of others has no effect on a terminal. */
export type TextOutput = Omit<TextStream, 'write'> & {
  /** `paint` colors the lines once they are clean, where there is color. */
  write(text: string, paint?: Painter): void
  /** JSON or YAML. Nothing of it is lost: what would have an effect is escaped, so YAML has it in double quotes. */
  document(text: string): void
  /** Replaces the content of the terminal. */
  screen(text: string, paint?: Painter): void
}

/** A connection to the API server of the kubeconfig and the connection flags. */
export type Connection = {
  readonly transport: KubeTransport
  /** The context of the kubeconfig, for people; absent without a kubeconfig. */
  readonly contextName: string | undefined
  /** For people: `https://host:port`, with the path if it has one. */
  readonly server: string
  /** The value of `-n`. */
  readonly namespace: string | undefined
  /**
   * The namespace of the agents: `-n`, or by default the namespace of their DaemonSet, with one request to the API
   * server. Throws a `CommandError` without `-n` if there is no DaemonSet, or more than one.
   */
  readonly agentNamespace: () => Promise<string>
}

export type Context = {
  readonly stdout: TextOutput
  readonly stderr: TextOutput
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly random: Random
  /** Aborted by ctrl-C and SIGTERM. Everything that waits takes it. */
  readonly signal: AbortSignal
  /** The value of `-o`, one of the command's formats. */
  readonly format: OutputFormat
  /** The value of `--dry-run`. Only `none` may change anything. */
  readonly dryRun: DryRun
  /** The API server of the kubeconfig and the connection flags; opened by the first call, the same one afterwards. */
  connect(): Promise<Connection>
  /**
   * Returns if the user agrees, or has passed `--yes`. Otherwise throws a refusal, also if there is no terminal. Does
   * not ask in a dry run.
   */
  confirm(question: string): Promise<void>
  /** One line on stderr, with `--verbose` only. */
  verbose(message: string): void
  /** The whole file; `-` is standard input. Throws a usage error that names the file. */
  readText(path: string): Promise<string>
}

/** A command with the types of its own arguments and flags. */
type CommandOf<A extends Arguments, F extends Flags> = {
  /** Such as `node list`. A first word that groups commands is described in `flags.ts`. */
  readonly name: string
  readonly aliases?: readonly string[]
  /** One line in the list of commands: a verb, no full stop. */
  readonly summary: string
  /** Details in whole sentences. */
  readonly description?: string
  /** In order. */
  readonly arguments?: A
  readonly flags?: F
  /** One complete call, such as `kubectl skyhook pause tuning --yes`. A test runs it. */
  readonly example: string
  /** Further calls. The parser accepts them; not every machine has what they need. */
  readonly otherExamples?: readonly string[]
  /**
   * The meaning of its exit codes, in addition to those that all commands of its kind have (`exitCodesOf` in parse.ts).
   * Null: the command never ends with this one.
   */
  readonly exitCodes?: Partial<Record<ExitCode, string | null>>
  /** The values of `-o`; the first is the default. Absent: the command has one output format. */
  readonly formats?: readonly OutputFormat[]
  /** It changes something: it has `--yes` and respects `context.dryRun`. Others refuse `--dry-run`. */
  readonly isAction?: true
  /** It needs no cluster: connection flags are not shown in its help. */
  readonly isLocal?: true
  /** Returns the exit code. Throws `CommandError` for what the user can fix. */
  readonly run: (context: Context, input: Input<A, F>) => Promise<ExitCode>
}

/** Any command, as the framework treats it: its definitions decide the types of its input. */
export type Command = Omit<CommandOf<Arguments, Flags>, 'run'> & {
  readonly run: (context: Context, input: AnyInput) => Promise<ExitCode>
}

export type AnyInput = {
  readonly arguments: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly flags: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>
}

/** Types the input of a command by its definitions. */
export function defineCommand<const A extends Arguments = {}, const F extends Flags = {}>(
  command: CommandOf<A, F>,
): Command {
  return command as unknown as Command
}

/** Types the values of flags by their definitions. */
export const defineFlags = <const F extends Flags>(flags: F): F => flags

/** The values of these flags. */
export type FlagValues<F> = Input<{}, F>['flags']

/** The environment of a run of the tool; the real one is in `main.ts`, tests make their own. */
export type Machine = {
  readonly stdout: TextStream
  readonly stderr: TextStream
  readonly stdin: TextInput
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly random: Random
  /** Aborted by ctrl-C and SIGTERM. */
  readonly signal: AbortSignal
  /** A file as text. Rejects with Node's errors. */
  readFile(path: string): Promise<string>
}

export type TextInput = {
  readonly isTerminal: boolean
  /** One line without its end; undefined at the end of input. Rejects with the signal's reason. */
  readLine(signal: AbortSignal): Promise<string | undefined>
  /** All of it. */
  readAll(): Promise<string>
}
