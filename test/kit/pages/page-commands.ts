/** The commands that pages of docs/usage print, for the tests that run them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const pages = join(import.meta.dirname, '..', '..', '..', 'docs', 'usage')

/** Where a block is run: with a kubeconfig, as root on the host of a node, or in the folder of a release. */
export type Place = 'cluster' | 'host' | 'release'

export type Block = {
  readonly page: string
  /** The nearest heading above. */
  readonly section: string
  readonly line: number
  readonly place: Place
  readonly script: string
}

export const textOfPage = (page: string): string => readFileSync(join(pages, page), 'utf8')

/**
 * The blocks between ```sh, ```sh host or ```sh release and ``` of a page, in order, those of lists without their
 * indentation. @throws Error for a block of another place
 */
export function blocksOf(page: string, text = textOfPage(page)): readonly Block[] {
  return [...text.matchAll(/^( *)```sh(.*)\n([^]*?)^\1```$/gm)].map(
    ({ index, 1: indent = '', 2: word = '', 3: body = '' }) => {
      const above = text.slice(0, index)
      const line = above.split('\n').length
      const [, section = ''] = [...above.matchAll(/^##+ (.*)$/gm)].at(-1) ?? []
      const script = body.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
      return { page, section, line, place: placeOf(word.trim(), `${page}:${line}`), script }
    },
  )
}

function placeOf(word: string, where: string): Place {
  if (word === '') return 'cluster'
  if (word === 'host' || word === 'release') return word
  throw new Error(`${where}: a block is "sh", "sh host" or "sh release", and not "sh ${word}"`)
}

/** The script with this text replaced. @throws Error where it does not have it */
export function replaced(script: string, text: string, by: string): string {
  if (!script.includes(text)) throw new Error(`the page no longer says: ${text}`)
  return script.replace(text, by)
}
