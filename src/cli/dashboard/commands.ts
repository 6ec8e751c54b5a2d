/** Commands that a person copies from the page. Pure. */
import type { NodeAction } from './page-data.ts'

/**
 * The command for the cluster that the page shows: a shell's current context may be another one. `undefined` context:
 * there is no kubeconfig, and nothing is added.
 */
export function inContext(command: string, context: string | undefined): string {
  if (context === undefined) return command
  return command
    .split(' && ')
    .map((part) => {
      if (!part.startsWith('kubectl ')) return part
      const [, call = part, rest = ''] = /^(.*?)( \| .*| # .*)?$/.exec(part) ?? []
      return `${call} --context ${quoted(context)}${rest}`
    })
    .join(' && ')
}

/** What a person may want to do with a node of a Skyhook. */
export const nodeActions = (skyhook: string, node: string): readonly NodeAction[] => [
  { what: 'Explain it in a terminal', command: `kubectl skyhook explain ${quoted(skyhook)} ${quoted(node)}` },
  ...changesOf(skyhook, node),
]

/** The same for a support archive: reading needs no cluster, and what the archive does not have is on the cluster. */
export const archivedNodeActions = (skyhook: string, node: string, file: string): readonly NodeAction[] => [
  {
    what: 'Explain it in a terminal, from the archive',
    command: `kubectl skyhook explain ${quoted(skyhook)} ${quoted(node)} --from ${quoted(file)}`,
  },
  { what: 'Explain it as it is now', command: `kubectl skyhook explain ${quoted(skyhook)} ${quoted(node)}` },
  { what: 'Output of its steps', command: logsCommand(skyhook, node) },
  ...changesOf(skyhook, node),
]

export const logsCommand = (skyhook: string, node: string): string =>
  `kubectl skyhook logs ${quoted(skyhook)} --node ${quoted(node)}`

const changesOf = (skyhook: string, node: string): readonly NodeAction[] => [
  { what: 'Keep the node out of rollouts', command: `kubectl skyhook node ignore ${quoted(node)}` },
  { what: 'Let the node take part again', command: `kubectl skyhook node unignore ${quoted(node)}` },
  {
    what: 'Run everything on the node again',
    command: `kubectl skyhook node reset ${quoted(node)} --skyhook ${quoted(skyhook)}`,
  },
  { what: 'Pause the Skyhook everywhere', command: `kubectl skyhook pause ${quoted(skyhook)}` },
  { what: 'Resume the Skyhook', command: `kubectl skyhook resume ${quoted(skyhook)}` },
]

/** As a POSIX shell takes it for one word. */
const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
