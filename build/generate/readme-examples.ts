/** What the README prints of the tool, from files that a test compares with the tool (src/cli/commands/readme.test.ts). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const goldens = join(import.meta.dirname, '../../src/cli/commands/goldens')

/** Files by the command that the README names above what they hold. */
const examples: Readonly<Record<string, string>> = {
  'kubectl skyhook plan -f tuning.yaml': 'readme-plan.txt',
  'kubectl skyhook explain tuning': 'readme-explain.txt',
}

/** The page with what the tool answers below each of the commands. @throws Error where the page lacks one of them */
export function withExamples(page: string, read: (file: string) => string = readGolden): string {
  return Object.entries(examples).reduce((text, [command, file]) => {
    const [before, after] = text.split(`\`\`\`console\n$ ${command}\n`)
    const end = after?.indexOf('\n```\n')
    if (before === undefined || after === undefined || end === undefined || end < 0)
      throw new Error(`README.md lacks a console block with "$ ${command}"`)
    return `${before}\`\`\`console\n$ ${command}\n${read(file).trimEnd()}${after.slice(end)}`
  }, page)
}

const readGolden = (file: string): string => readFileSync(join(goldens, file), 'utf8')
