/** Reads what `kubectl skyhook explain SKYHOOK NODE` prints, as a person does. */

export type Printed = {
  /** In brackets of the headline; undefined if nothing is held up. */
  readonly cause: string | undefined
  /** Of the first closed gate: the problem, what opens it, and the command. */
  readonly message: string
  readonly unblock: string
  readonly command: string
}

const remedyAt = /^ *unblock: (.*)$/
const commandAt = /^ *run: {5}(.*)$/

export function readPrinted(text: string): Printed {
  const lines = text.split('\n')
  const at = lines.findIndex((line) => remedyAt.test(line))
  const first = lines.findIndex((line) => /^\S+ +CLOSED /.test(line))
  const [, cause] = /\(([^)]*)\)$/.exec(lines[0] ?? '') ?? []
  if (at < 0) return { cause, message: '', unblock: '', command: '' }
  return {
    cause,
    message: lines
      .slice(Math.max(0, first), at)
      .join('\n')
      .replace(/^\S+ +CLOSED +/, ''),
    unblock: remedyAt.exec(lines[at] ?? '')?.[1] ?? '',
    command: commandAt.exec(lines[at + 1] ?? '')?.[1] ?? '',
  }
}

/** Names that the catalogue leaves open: none of them may be left in what is printed. */
export const openNames = /\$[A-Z]|\b(?:SKYHOOK|NODE|NAMESPACE|PACKAGE|STAGE|OTHER|POLICY|IMAGE|REGISTRY)\b/
