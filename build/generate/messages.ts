/** The list of every message of the product, so that all can be read in one go. */
import { dirname } from 'node:path'
import { type Node, parseSync, Visitor } from 'oxc-parser'

type Source = { readonly path: string; readonly text: string }

/** Fewer words are names, formats and parts of sentences. */
const leastWords = 3

const opening = `What the agent, the census, kubectl skyhook and their pages can say, by the part that says it, in alphabetical order.
{…} stands for what is put in. docs/usage/reasons.md says what to do. Written by build/generate/messages.ts.
`

/** Messages by folder. */
export function messagesList(sources: readonly Source[]): string {
  const partOf = ({ path }: Source): string =>
    dirname(path)
      .split('/')
      .slice(0, path.startsWith('src/cli/') ? 3 : 2)
      .join('/')
  const sections = [...Map.groupBy(sources, partOf)].map(([part, files]) => {
    const messages = new Set(files.flatMap(({ path, text }) => messagesIn(path, text)))
    const lines = [...messages].toSorted().map((one) => `  ${one}\n`)
    return lines.length === 0 ? '' : `\n${part}\n${lines.join('')}`
  })
  return [opening, ...sections].join('')
}

/** What the literals of a source say: those of several words, joined where they are added up. */
export function messagesIn(path: string, text: string): string[] {
  const { program, errors } = parseSync(path, text)
  if (errors[0]) throw new Error(`cannot parse ${path}: ${errors[0].message}`)
  const messages: string[] = []
  const said = new Set<Node>()
  const add = (node: Node): void => {
    if (said.has(node)) return
    const whole = textOf(node, said).trim()
    if (whole.includes('\n')) return // a file that is written
    const message = whole.replaceAll(/[\s\p{Cc}]+/gu, ' ')
    if (isSentence(message)) messages.push(message)
  }
  new Visitor({
    BinaryExpression(node) {
      if (isText(node)) add(node)
    },
    TemplateLiteral: add,
    Literal(node) {
      if (typeof node.value === 'string') add(node)
    },
  }).visit(program)
  return messages
}

function isText(node: Node): boolean {
  if (node.type === 'BinaryExpression') return node.operator === '+' && (isText(node.left) || isText(node.right))
  return node.type === 'TemplateLiteral' || (node.type === 'Literal' && typeof node.value === 'string')
}

/** `said` gets what is part of the text. */
function textOf(node: Node, said: Set<Node>): string {
  said.add(node)
  if (node.type === 'Literal') return String(node.value)
  if (node.type === 'BinaryExpression' && isText(node)) return textOf(node.left, said) + textOf(node.right, said)
  if (node.type === 'TemplateLiteral')
    return node.quasis
      .flatMap(({ value }, index) => [value.cooked ?? value.raw, placeholder(node.expressions[index])])
      .join('')
  return placeholder(node)
}

/** The name of what is put in, where it has one. */
function placeholder(node: Node | undefined): string {
  if (node === undefined) return ''
  if (node.type === 'Identifier') return `{${node.name}}`
  if (node.type === 'MemberExpression' && !node.computed) return placeholder(node.property)
  if (node.type === 'CallExpression') {
    const [first] = node.arguments
    return node.arguments.length === 1 && first?.type !== 'SpreadElement' ? placeholder(first) : '{…}'
  }
  return '{…}'
}

const isSentence = (message: string): boolean =>
  message.split(' ').filter((word) => /\p{L}{2}/u.test(word)).length >= leastWords
