/** What came of a tier and a deliberate bug. */
export type Judgment =
  | { readonly outcome: 'caught'; readonly how: string }
  /** The time was up. */
  | { readonly outcome: 'undecided' }
  | { readonly outcome: 'missed'; readonly why: string }
