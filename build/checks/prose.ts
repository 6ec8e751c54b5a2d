/** What people read in a file: comments, messages and pages. */
import { parseSync, Visitor } from 'oxc-parser'
import { gap } from '../lint/phrases.ts'

/** The prose of a file at its places, in a text of the same length: `gap` takes the place of all else. */
export function proseOf(path: string, text: string): string {
  if (path.endsWith('.ts')) return proseOfSource(path, text)
  return path.endsWith('.md') ? proseOfPage(text) : text.replaceAll(/^\s*(?:#|\/\/)+/gm, blank)
}

const blank = (text: string): string => text.replaceAll(/[^\n]/g, ' ')
const hide = (text: string): string => text.replaceAll(/[^\n]/g, gap)

/** Stands between lines of one comment, and between parts of one message. */
const seam = /^[\s'"`+]*$|^\s*\/\/$/

/** Signs of the language around a comment or literal, and at the lines of a comment. */
const edges = /\n\s*\*+\/?|^[*'"`}]+|(?:\$\{|\*\/|['"`])$/g

type Part = { readonly start: number; readonly end: number }

const byStart = (a: Part, b: Part): number => a.start - b.start

/** Comments, and literals of more than one word or that continue such a one: others are names. */
function proseOfSource(path: string, text: string): string {
  const { program, comments, errors } = parseSync(path, text)
  if (errors[0]) throw new Error(`cannot parse ${path}: ${errors[0].message}`)
  const literals: Part[] = []
  new Visitor({
    Literal(node) {
      if (typeof node.value === 'string') literals.push(node)
    },
    TemplateElement(node) {
      literals.push(node)
    },
  }).visit(program)
  const parts: Part[] = comments.map(({ start, end }) => ({ start: start + 2, end }))
  let lastEnd = -1
  for (const { start, end } of literals.toSorted(byStart)) {
    const continues = lastEnd >= 0 && /^\s*\+\s*$/.test(text.slice(lastEnd, start))
    if (!continues && !/\s/.test(text.slice(start, end))) continue
    parts.push({ start, end })
    lastEnd = end
  }
  let prose = ''
  for (const { start, end } of parts.toSorted(byStart)) {
    const between = text.slice(prose.length, start)
    prose += (seam.test(between) ? blank : hide)(between)
    prose += text
      .slice(start, end)
      .replaceAll(edges, blank)
      .replaceAll(/`[^`]+`/g, hide)
  }
  return prose + hide(text.slice(prose.length))
}

/** Without code, titles of tests in quotation marks, targets of links, and what is generated: its source is checked. */
function proseOfPage(text: string): string {
  return text
    .replaceAll(/(?<=<!-- (?:values: )?generated\b[^>]*-->)[^]*?(?:<!-- end\b|$(?![^]))/g, hide)
    .replaceAll(/^ *```[^]*?^ *```$/gm, hide)
    .replaceAll(/`[^`]+`|“[^”]+”|\]\([^)]*\)/g, hide)
    .replaceAll(/^ *>/gm, blank)
}
