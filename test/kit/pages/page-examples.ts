/** What a page of docs/ prints for people to copy: files, and commands. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const textOf = (page: string): string => readFileSync(join(import.meta.dirname, '../../../docs', page), 'utf8')

/** Files by name: a line with nothing but a name in backticks, then a block with the content. */
export function filesOn(page: string): Map<string, string> {
  const file = /^`([\w.-]+(?:\/[\w.-]+)*)`\n\n```\w*\n([^]*?)^```$/gm
  return new Map([...textOf(page).matchAll(file)].map(([, name = '', content = '']) => [name, content]))
}

/** The files of a page, written below a folder. Modes are those of new files: none is executable. */
export function writeFilesOf(page: string, folder: string): void {
  for (const [name, content] of filesOn(page)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
}

/** The lines of the blocks without a language, in their order, without comments and without what tools answer. */
export function commandsOn(page: string): string[] {
  const blocks = [...textOf(page).matchAll(/^```(\w*)\n([^]*?)^```$/gm)].filter(([, language]) => language === '')
  return blocks.flatMap(([, , text = '']) =>
    text.split('\n').filter((line) => /^(?:sudo |kubectl |echo |docker )/.test(line)),
  )
}
