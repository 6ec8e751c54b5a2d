import type { Clock, Random } from '../../schemas/clock.ts'
import type { TextStream } from './command.ts'

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
