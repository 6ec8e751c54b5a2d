import { refusedError } from './command-error.ts'
import type { Machine } from './machine.ts'

/**
 * Asks on stderr, so that scripts read only the output from standard output. Returns after y or yes. Throws a refusal
 * after anything else, and immediately without a terminal.
 */
export async function confirm({ stdin, stderr, signal }: Machine, question: string): Promise<void> {
  if (!stdin.isTerminal || !stderr.isTerminal)
    throw refusedError(`not confirmed: ${question}`, 'no terminal to ask for confirmation: add --yes')
  stderr.write(`${question} [y/N]: `)
  const answer = await stdin.readLine(signal)
  if (answer === undefined) stderr.write('\n')
  if (!/^(y|yes)$/i.test(answer?.trim() ?? '')) throw refusedError('canceled, nothing was changed')
}
