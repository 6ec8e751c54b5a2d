import { ApiError, NoResponseError } from '../../../kube/errors.ts'
import { messageOf } from '../../../schemas/json.ts'

/** The exit codes of `kubectl skyhook`. Scripts depend on the numbers. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  refused: 4,
  timeout: 5,
  stalled: 6,
  wouldDisrupt: 7,
  noNodes: 8,
  /** Ctrl-C, as shells report it: 128 + SIGINT. */
  interrupted: 130,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** What each code means, for the help and the reference page. */
export const exitCodeTexts: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  1: 'failed, wholly or in part; the errors are on stderr',
  2: 'the call is wrong: unknown flag, missing argument, unreadable file',
  3: 'the named object does not exist',
  4: 'refused: by you at the prompt, by the API server, or because there is no terminal to ask at',
  5: 'not done within --timeout',
  6: 'the Skyhook is stalled and will not complete by itself',
  7: 'the change would disrupt nodes (plan --detailed-exitcode only)',
  8: 'the Skyhook selects no node (status --wait without --allow-no-nodes only)',
  130: 'interrupted by ctrl-C',
}

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

/** The text of an error: what failed, where, how to fix it. Without a full stop and line end. */
export function describeError(error: unknown): string {
  if (error instanceof CommandError) return sentence(error.message, error.remedy)
  if (error instanceof ApiError) return sentence(messageOfRefusal(error), remedyOf(error))
  if (error instanceof NoResponseError)
    return sentence(`the API server does not answer: ${error.message}`, 'check --context and the network')
  return `error: ${error instanceof Error ? (error.stack ?? error.message) : messageOf(error)}`
}

function sentence(message: string, remedy: string | undefined): string {
  return remedy === undefined ? `error: ${message}` : `error: ${message}\n       ${remedy}`
}

function messageOfRefusal({ message, request }: ApiError): string {
  return request === undefined ? message : `${message} (${request})`
}

function remedyOf({ status }: ApiError): string | undefined {
  switch (status) {
    case 401:
      return 'log in again, or choose another context with --context'
    case 403:
      return 'ask an administrator for this permission, or choose another user with --context or --as'
    case 429:
    case 503:
      return 'the API server is overloaded: try again'
    default:
      return undefined
  }
}

/** The exit code for this error. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommandError) return error.exitCode
  return error instanceof ApiError ? apiExitCode(error) : exitCodes.failed
}

function apiExitCode({ status }: ApiError): ExitCode {
  switch (status) {
    case 404:
      return exitCodes.notFound
    case 401:
    case 403:
    case 422:
      return exitCodes.refused
    default:
      return exitCodes.failed
  }
}
