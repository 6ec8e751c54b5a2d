/** Commands that the tool and the pages recommend exist, with these flags. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseCall } from '../base/framework/parse.ts'
import { allCommands } from './all.ts'

const pages = join(import.meta.dirname, '../../../docs/usage')
const goldens = join(import.meta.dirname, 'goldens')
const textsOf = (folder: string, ending: string, pattern: RegExp): string[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith(ending))
    .flatMap((file) => [...readFileSync(join(folder, file), 'utf8').matchAll(pattern)])
    .map(([, call = '']) => call.trim())

/** In code of the pages, and after `run:` in explanations. */
const calls = [
  ...textsOf(pages, '.md', /^(?: *|[^`\n]*\| )(?:\$ )?kubectl skyhook ([^\n#|>]+)/gm),
  ...textsOf(pages, '.md', /`kubectl skyhook ([^`]+)`/g),
  ...textsOf(goldens, '.txt', /^\s*run: +kubectl skyhook ([^\n#]+)$/gm),
].filter((call) => /^[a-z]/.test(call))

test.each([...new Set(calls)])('"kubectl skyhook %s" is a call that the tool takes', (call) => {
  const filled = call.replace('"$STAGE"', 'apply') // other options take any text
  const argv = [...(filled.match(/"[^"]*"|'[^']*'|\S+/g) ?? []), ...(hasNoArguments(call) ? ['--help'] : [])]
  expect(parseCall(argv, allCommands)).toMatchObject({
    outcome: expect.stringMatching(/call|help/) as string,
  })
})

/** Pages also mention commands by name only. */
const hasNoArguments = (call: string): boolean => allCommands.some(({ name }) => name === call)
