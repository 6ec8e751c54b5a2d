import { ApiError, NoResponseError } from '../../kube/errors.ts'
import { messageOf } from '../../schemas/json.ts'
import { CommandError } from './command-error.ts'

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
