/** Commands that a person copies from the page. Pure. */

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
export function nodeActions(skyhook: string, node: string): readonly { what: string; command: string }[] {
  const names = `${quoted(skyhook)} ${quoted(node)}`
  return [
    { what: 'Explain it in a terminal', command: `kubectl skyhook explain ${names}` },
    { what: 'Keep the node out of rollouts', command: `kubectl skyhook node ignore ${quoted(node)}` },
    { what: 'Let the node take part again', command: `kubectl skyhook node unignore ${quoted(node)}` },
    {
      what: 'Run everything on the node again',
      command: `kubectl skyhook node reset ${quoted(node)} --skyhook ${quoted(skyhook)}`,
    },
    { what: 'Pause the Skyhook everywhere', command: `kubectl skyhook pause ${quoted(skyhook)}` },
    { what: 'Resume the Skyhook', command: `kubectl skyhook resume ${quoted(skyhook)}` },
  ]
}

/** As a POSIX shell takes it for one word. */
const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
