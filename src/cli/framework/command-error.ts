import { exitCodes, type ExitCode } from './exit-codes.ts'

/** A failure that the user can act on: what failed and where, and how to fix it. */
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

/** The call is invalid; nothing was done. */
export const usageError = (message: string, remedy?: string): CommandError =>
  new CommandError(exitCodes.usage, message, remedy)

/** The named object does not exist. */
export const notFoundError = (message: string, remedy?: string): CommandError =>
  new CommandError(exitCodes.notFound, message, remedy)

/** Refused by the user, the API server or an admission policy. */
export const refusedError = (message: string, remedy?: string): CommandError =>
  new CommandError(exitCodes.refused, message, remedy)
