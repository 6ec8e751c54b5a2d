import { exitCodes, type ExitCode } from './exit-codes.ts'

/** An end that the person can do something about: what failed and where, and how to mend it. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: ExitCode
  /** A sentence or a command to run. */
  readonly remedy: string | undefined

  constructor(exitCode: ExitCode, message: string, remedy?: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.exitCode = exitCode
    this.remedy = remedy
  }
}

/** The call is wrong; nothing was done. */
export const usageError = (message: string, remedy?: string): CommandError =>
  new CommandError(exitCodes.usage, message, remedy)

/** What the call names is not there. */
export const notFoundError = (message: string, remedy?: string): CommandError =>
  new CommandError(exitCodes.notFound, message, remedy)

/** Somebody said no: the person, the API server, an admission policy. */
export const refusedError = (message: string, remedy?: string): CommandError =>
  new CommandError(exitCodes.refused, message, remedy)
