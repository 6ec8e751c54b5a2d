/** How a plan looks on a terminal and in a pull request. Pure. */
import { shownLine, shownLines } from '../../schemas/plain-text.ts'

export type TextForm = {
  heading(text: string): string
  /** Facts about the whole. */
  list(lines: readonly string[]): string
  /** Nodes with the same plan, and what happens there in order. A line that starts with blanks continues the last one. */
  group(title: string, lines: readonly string[]): string
}

export const terminal: TextForm = {
  heading: (text) => shownLines([text]),
  list: (lines) => shownLines(lines.map((line) => `  ${line}`)),
  group: (title, lines) => shownLines([`  ${title}`, ...lines.map((line) => `    ${line}`)]),
}

/**
 * No text is read as markup or mentions anybody. Forges look for mentions and numbers of issues in what the Markdown
 * has become, without its backslashes and with its entities: only something in between keeps them from being found.
 */
const escaped = (text: string): string =>
  shownLine(text)
    .replaceAll(/[\\`*_{}[\]<>#|~@&]/g, (character) => `\\${character}`)
    .replaceAll(/[@#](?=\w)/g, (character) => `${character}<!-- -->`)

export const markdown: TextForm = {
  heading: (text) => `### ${escaped(text)}\n\n`,
  list: (lines) => (lines.length === 0 ? '' : `${lines.map((line) => `- ${escaped(line)}\n`).join('')}\n`),
  group(title, lines) {
    const items = lines.map((line) =>
      line.startsWith(' ') ? `   - ${escaped(line.trimStart())}\n` : `1. ${escaped(line)}\n`,
    )
    return `**${escaped(title)}**\n\n${items.length === 0 ? '' : `${items.join('')}\n`}`
  },
}
