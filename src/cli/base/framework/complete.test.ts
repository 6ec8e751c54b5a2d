import { expect, test } from 'vitest'
import { allCommands } from '../../commands/all.ts'
import { formatSuggestions, suggest } from './complete.ts'

const names: Readonly<Record<string, readonly string[]>> = {
  skyhooks: ['tuning', 'tuned', 'gpu'],
  nodes: ['n1', 'n2'],
  packages: ['shellscript'],
  contexts: ['prod'],
  namespaces: ['skyhook'],
}

/** What is suggested for a line as it stands, with a `|` where it ends. */
async function suggested(line: string): Promise<readonly string[]> {
  const typed = line.replace(/\|$/, '').split(' ')
  const { suggestions, mayBeFile } = await suggest(typed, allCommands, async (source) => names[source] ?? [])
  return mayBeFile ? ['a file'] : suggestions.map(({ value }) => value)
}

test.each([
  ['pau|', ['pause']],
  ['node |', ['list', 'status', 'reset', 'ignore', 'unignore', 'hold', 'release']],
  ['nodes un|', ['unignore']],
  ['dp |', ['reset']],
  ['pause |', ['tuning', 'tuned', 'gpu']],
  ['pause tun|', ['tuning', 'tuned']],
  ['pause tuning |', []],
  ['pause --yes g|', ['gpu']],
  ['--context prod pause g|', ['gpu']],
  ['--context |', ['prod']],
  ['--context=p|', ['prod']],
  ['-n |', ['skyhook']],
  ['node status n1 |', ['n1', 'n2']],
  ['node list --skyhook t|', ['tuning', 'tuned']],
  ['node list --skyhook tuning -o |', ['table', 'wide', 'json', 'yaml', 'name']],
  ['package rerun |', ['shellscript']],
  ['package rerun shellscript --stage |', ['apply', 'config', 'interrupt', 'post-interrupt']],
  ['pause --dry-run tu|', ['tuning', 'tuned']],
  ['pause --dry-run=s|', ['server']],
  ['pause tuning --dry|', ['--dry-run']],
  ['dashboard --dry|', []],
  ['pause --y|', ['--yes']],
  ['pause -- --y|', []],
  ['--kubeconfig |', ['a file']],
  ['dashboard --fr|', ['--from']],
  ['dashboard --from |', ['a file']],
  ['completion f|', ['fish']],
  ['wrong |', []],
])('"%s" may continue with %o', async (line, expected) => {
  expect(await suggested(line)).toEqual(expected)
})

test('the flags of a command are its own and the global ones', async () => {
  const flags = await suggested('reset tuning --|')
  expect(flags).toEqual(expect.arrayContaining(['--package', '--skip-batch-reset', '--yes', '--context', '--dry-run']))
  expect(flags).not.toContain('--skyhook')
})

test('suggestions are written as kubectl reads them', () => {
  const suggestions = [
    { value: 'pause', description: 'pause a Skyhook' },
    { value: 'n1', description: '' },
  ]
  expect(formatSuggestions({ suggestions, mayBeFile: false })).toBe('pause\tpause a Skyhook\nn1\n:4\n')
  expect(formatSuggestions({ suggestions: [], mayBeFile: true })).toBe(':0\n')
})
