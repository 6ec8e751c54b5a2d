/** Lint rules: one way to write what can be written in several. */
import { type Context, type Node, nameOf, type Position, productPath } from './syntax.ts'

const maxColumns = 120

/** What may be longer, since nothing can break it: addresses, titles of tests, regular expressions, inner templates. */
const unbreakable = /https?:\/\/\S+|^\s*(test|it)\b.*\(['"`]|^\s*\/.*\/[a-z]*,?$/

const lineLength = {
  create(context: Context) {
    const inTemplates = new Set<number>()
    return {
      TemplateLiteral(node: Node) {
        const { start, end } = node['loc'] as { start: Position; end: Position }
        if (end.line > start.line) for (let line = start.line; line <= end.line; line++) inTemplates.add(line)
      },
      'Program:exit'() {
        for (const [index, text] of context.sourceCode.lines.entries()) {
          if (text.length <= maxColumns || unbreakable.test(text) || inTemplates.has(index + 1)) continue
          const position = { line: index + 1, column: 0 }
          context.report({
            loc: { start: position, end: position },
            message: `this line has ${text.length} columns, more than ${maxColumns}`,
          })
        }
      },
    }
  },
}

const constants = {
  create(context: Context) {
    if (!productPath(context.filename)) return {}
    return {
      VariableDeclarator(node: Node) {
        const name = nameOf(node['id'])
        const isOurs = (node['parent'] as Node)['declare'] !== true // else the bundler gives it
        if (isOurs && /^[A-Z][A-Z0-9_]+$/.test(name))
          context.report({ node, message: `name the constant ${name} in camelCase` })
      },
    }
  },
}

const infinity = {
  create: (context: Context) => ({
    MemberExpression(node: Node) {
      const name = nameOf(node['property'])
      if (nameOf(node['object']) === 'Number' && /^(POSITIVE|NEGATIVE)_INFINITY$/.test(name))
        context.report({ node, message: `write Infinity instead of Number.${name}` })
    },
  }),
}

/** `constructor` is a valid name of a package, and every object has it. A literal is a name that nobody chose. */
const inherited = {
  create(context: Context) {
    if (!productPath(context.filename)) return {}
    return {
      BinaryExpression(node: Node) {
        if (node['operator'] !== 'in' || (node['left'] as Node).type === 'Literal') return
        context.report({ node, message: 'write Object.hasOwn: `in` finds what every object inherits, too' })
      },
    }
  },
}

const discards = {
  create(context: Context) {
    if (!productPath(context.filename)) return {}
    return {
      ObjectPattern(node: Node) {
        for (const property of node['properties'] as Node[])
          if (nameOf(property['value']).startsWith('_'))
            context.report({ node: property, message: 'take out a member with a function that says so' })
      },
    }
  },
}

const starting = /^(setTimeout|setInterval|setImmediate|startTimer|startInterval|connect)$/

/** The function that a node belongs to, if an exported `create…`. */
function creatorOf(node: Node): string | undefined {
  let one: Node | undefined = node
  while (one && !/Function/.test(one.type)) one = one['parent'] as Node | undefined
  const parent = one?.['parent'] as Node | undefined
  const declaration = parent?.type === 'VariableDeclarator' ? (parent['parent'] as Node) : one
  const name = nameOf(one?.['id']) || nameOf(parent?.['id'])
  const isExported = (declaration?.['parent'] as Node | undefined)?.type === 'ExportNamedDeclaration'
  return isExported && /^create[A-Z]/.test(name) ? name : undefined
}

const starts = {
  create(context: Context) {
    if (!productPath(context.filename)) return {}
    return {
      CallExpression(node: Node) {
        const callee = node['callee'] as Node
        const called = nameOf(callee) || nameOf(callee['property'])
        const creator = starting.test(called) ? creatorOf(node) : undefined
        if (creator)
          context.report({ node, message: `${creator} calls ${called}: name what starts something start… or open…` })
      },
    }
  },
}

/** A file has something of its own. Others import a thing from the file that has it. */
const reexports = {
  create(context: Context) {
    if (!productPath(context.filename)) return {}
    return {
      Program(node: Node) {
        const body = node['body'] as Node[]
        const isPassedOn = ({ type, declaration }: Node): boolean =>
          /^(ExportAllDeclaration|ImportDeclaration)$/.test(type) || (type === 'ExportNamedDeclaration' && !declaration)
        if (body.some(({ type }) => type.startsWith('Export')) && body.every(isPassedOn))
          context.report({ node, message: 'this file only passes on what others export' })
      },
    }
  },
}

/** Words that continue a sentence and do not start one. */
const tails = new Set(
  `of that which whose is are was were be been has have had and or but can cannot may must does do did never too also
  gets goes gives takes runs leaves keeps refuses shows says comes carries tells replaces removes needs fails asks stays
  stands holds makes becomes finds follows lies survives uninstalls accepts grows`.split(/\s+/),
)
/** Words that may introduce a sentence, with a comma before its subject. */
const introductions = new Set(
  `with without by in on for from to into as when while after before because since until unless under behind beside if
  where`.split(/\s+/),
)

function isTail(title: string): boolean {
  const [first = '', ...others] = title.split(/\s+/)
  if (/^[%$…]/.test(first)) return false // the sentence is in the table
  return others.length === 0 || tails.has(first) || (introductions.has(first) && !title.includes(', '))
}

const titles = {
  create(context: Context) {
    if (!context.filename.endsWith('.test.ts')) return {}
    return {
      CallExpression(node: Node) {
        const callee = sourceOf(node['callee'] as Node)
        if (!/^(test|it)(\.|$)/.test(callee)) return
        const [title] = node['arguments'] as Node[]
        const text = textOf(title)
        if (title && text !== '' && isTail(text))
          context.report({ node: title, message: `a title is a whole sentence and starts with its subject: "${text}"` })
      },
    }
  },
}

/** `expect.poll` belongs to the test that started last, so it throws once that has ended, while others continue. */
const polls = {
  create(context: Context) {
    const found: Node[] = []
    let isConcurrent = false
    return {
      MemberExpression(node: Node) {
        const source = sourceOf(node)
        if (source === 'expect.poll') found.push(node)
        if (/^(describe|test)\.concurrent$/.test(source)) isConcurrent = true
      },
      'Program:exit'() {
        if (!isConcurrent) return
        for (const node of found) context.report({ node, message: 'concurrent tests take vi.waitFor, not expect.poll' })
      },
    }
  },
}

/** `test.each(…)` as `test.each`. */
function sourceOf(callee: Node): string {
  if (callee.type === 'CallExpression') return sourceOf(callee['callee'] as Node)
  if (callee.type === 'MemberExpression') return `${sourceOf(callee['object'] as Node)}.${nameOf(callee['property'])}`
  return nameOf(callee)
}

function textOf(title: Node | undefined): string {
  if (title?.type === 'Literal') return nameOf(title)
  if (title?.type !== 'TemplateLiteral') return ''
  return (title['quasis'] as { value: { raw: string } }[]).map(({ value }) => value.raw).join('…')
}

const rules = {
  'line-length': lineLength,
  constants,
  infinity,
  inherited,
  discards,
  starts,
  reexports,
  titles,
  polls,
}

// oxlint-disable-next-line import/no-default-export -- the form of a plugin
export default { meta: { name: 'dialect' }, rules }
