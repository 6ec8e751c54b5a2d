/**
 * Words that names in `src` do not use, and the words of the field that they use instead. A word is one part of a
 * camelCase identifier or of a file name.
 */
export const glossary: Readonly<Record<string, string>> = {
  world: 'snapshot',
  worlds: 'snapshots',
  draft: 'builder',
  debt: 'pendingInterrupt',
  debts: 'pendingInterrupts',
  owe: 'pending',
  owes: 'pending',
  owed: 'pending',
  wish: 'request',
  wishes: 'requests',
  wants: 'requests',
  wanted: 'requested, desired',
  halt: 'cancel',
  stand: 'status, campaign, resign',
  standing: 'context',
  hold: 'gate, pause, freeze, delay',
  desk: 'reconciler',
  tell: 'report',
  telling: 'report, events',
  teller: 'reporter',
  told: 'reported',
  said: 'reported',
  saying: 'reporting',
  news: 'changes, events',
  words: 'text, message, fields',
  trouble: 'error',
  troubles: 'errors',
  patience: 'timeout',
  hinder: 'block',
  hindrance: 'blocker',
  lacking: 'missing',
  scribble: 'malformed',
  belied: 'contradicted',
  twin: 'duplicate',
  twins: 'duplicates',
  crowd: 'fleet',
  incumbent: 'operator',
  inherit: 'bootstrap',
  inherited: 'prior',
  vanish: 'planDeleted',
  vanished: 'deleted',
  sight: 'snapshot',
  torture: 'faults',
  careless: 'noFsync',
  anew: 'again',
  begun: 'started',
  oftener: 'minInterval',
  quiet: 'suppressed',
}

/** Public names and what follows them: they may have such a word. */
const exceptions = /^(skyhookd_.*|slotHolds|FailedNodesHoldBudget)$/

/** The glossary's words in an identifier or file name. */
export function glossaryWords(name: string): string[] {
  if (exceptions.test(name)) return []
  const parts = name.split(/(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z]+/)
  return parts.map((part) => part.toLowerCase()).filter((part) => Object.hasOwn(glossary, part))
}
