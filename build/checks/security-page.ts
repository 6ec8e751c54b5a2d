/** What the security page promises, and whether it names the test that tried it. */
import type { Repository } from './repository.ts'

const page = 'docs/usage/security.md'
const promise = /\b(only|never|no|nobody|alone|cannot|may not)\b/i
const proof = /`[\w./-]+\.test\.ts`|\bnot tried\b/

/**
 * Each paragraph, list item and table that promises something and neither names a test nor says that nothing tried it,
 * as `page:line: problem`. A table and the headline of a list belong to the paragraph above them. Whether a named test
 * exists is checked with all other names of files.
 */
export function securityPageProblems(repository: Repository): string[] {
  return blocksOf(repository.read(page))
    .filter(({ text }) => promise.test(text) && !proof.test(text))
    .map(({ line }) => `${page}:${line}: a promise that names no test and does not say that it was not tried`)
}

type Block = { readonly line: number; readonly text: string }

function blocksOf(markdown: string): Block[] {
  const blocks: { line: number; text: string }[] = []
  let isFenced = false
  let isOpen = false
  let needsAll = false
  markdown.split('\n').forEach((line, index) => {
    const last = blocks.at(-1)
    if (line.startsWith('```')) isFenced = !isFenced
    else if (isFenced || /^(#|\[[\w-]+\]: )/.test(line)) isOpen = false
    else if (line.startsWith('|') && last && !/^[*\d]/.test(last.text)) last.text += `\n${line}`
    else if (line === '') isOpen = false
    else if (isOpen && last && !/^([*]|\d+[.]) /.test(line)) last.text += `\n${line}`
    else {
      // below "It cannot" each item is a promise, whatever its words are
      const isItem = /^([*]|\d+[.]) /.test(line)
      if (!isItem) needsAll = line === '**It cannot**'
      blocks.push({ line: index + 1, text: isItem && needsAll ? `It cannot ${line}` : line })
      isOpen = true
    }
  })
  return blocks.filter(({ text }) => text !== '**It cannot**')
}
