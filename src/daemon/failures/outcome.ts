import { isForeseen } from './reason-of.ts'

/** The outcome of an action. A rejection instead is a bug. */
export type ActionOutcome =
  | { readonly outcome: 'done' }
  /** An error that has a reason; the action is retried as long as a plan contains it. */
  | { readonly outcome: 'failed'; readonly error: unknown }

/** Rejects only with an unforeseen error. */
export async function outcomeOf(task: Promise<void>): Promise<ActionOutcome> {
  try {
    await task
    return { outcome: 'done' }
  } catch (error) {
    if (!isForeseen(error)) throw error
    return { outcome: 'failed', error }
  }
}
