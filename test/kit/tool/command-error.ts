import { CommandError } from '../../../src/cli/base/framework/command-error.ts'

/** The error of a command that the call throws; it throws another one, or that there was none. */
export function errorOf(call: () => unknown): CommandError {
  try {
    call()
  } catch (error) {
    if (error instanceof CommandError) return error
    throw error
  }
  throw new Error('nothing was refused')
}
