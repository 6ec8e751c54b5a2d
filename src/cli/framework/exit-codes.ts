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
