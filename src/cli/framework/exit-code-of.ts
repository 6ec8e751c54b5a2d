import { ApiError } from '../../kube/errors.ts'
import { CommandError } from './command-error.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'

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
