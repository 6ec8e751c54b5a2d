/** How a step ended. */
export type StepEnd =
  | { readonly outcome: 'exited'; readonly code: number }
  | { readonly outcome: 'killed'; readonly signal: string }
  | { readonly outcome: 'timeout' }
  | { readonly outcome: 'failed-to-start'; readonly detail: string }
  | { readonly outcome: 'unknown'; readonly detail: string }
