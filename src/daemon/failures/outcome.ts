import { isForeseen } from './reason-of.ts'

/** What became of an action. A rejection instead is a mistake of the program. */
export type ActionOutcome =
  | { readonly outcome: 'done' }
  /** One of the errors that reasons have a name for; tried again as long as a plan asks for it. */
  | { readonly outcome: 'failed'; readonly error: unknown }

/** Rejects only with what nobody foresaw. */
export async function outcomeOf(task: Promise<void>): Promise<ActionOutcome> {
  try {
    await task
    return { outcome: 'done' }
  } catch (error) {
    if (!isForeseen(error)) throw error
    return { outcome: 'failed', error }
  }
}
