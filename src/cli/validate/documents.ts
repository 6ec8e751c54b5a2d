/** Documents of a YAML or JSON file, and the lines of what is in them. Pure. */
import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  type YAMLParseError,
} from 'yaml'
import type { Finding } from '../../schemas/finding.ts'

export type SourceDocument = {
  readonly value: unknown
  /** The line, from 1, of a place, or of the closest place around it that is written down. */
  lineOf(pointer: string): number
}

export type SourceFile = {
  readonly documents: readonly SourceDocument[]
  /** Without `file`. */
  readonly problems: readonly Omit<Finding, 'file'>[]
}

/** Reads text as `kubectl` does: YAML 1.1, in which `yes` is true and `0o10` is text. Never throws. */
export function readDocuments(text: string): SourceFile {
  const lines = new LineCounter()
  const parsed = parseAllDocuments(text, {
    version: '1.1',
    merge: true,
    lineCounter: lines,
    customTags: (tags) =>
      tags.filter((tag) => typeof tag === 'string' || (tag.tag !== timestampTag && tag.format !== 'TIME')),
  })
  const documents = Array.isArray(parsed) ? (parsed as Document[]) : []
  const problems = documents.flatMap(({ errors }) =>
    errors.map((error) => problemOf(error, lines.linePos(error.pos[0]).line)),
  )
  const readable = documents.filter(({ errors }) => errors.length === 0)
  const [first] = problems
  const isTemplate = first !== undefined && (text.split('\n')[(first.line ?? 1) - 1] ?? '').includes('{{')
  return {
    // what follows a template is not a mistake of its own
    problems: isTemplate ? [{ ...first, ...templateProblem }] : problems,
    documents: readable
      .map((document) => ({
        value: document.toJS() as unknown,
        lineOf: (pointer: string) => lines.linePos(offsetOf(document, pointer)).line,
      }))
      .filter(({ value }) => value !== null && value !== undefined),
  }
}

type FileProblem = SourceFile['problems'][number]

const templateProblem = {
  message: 'is not YAML but a template: it has {{',
  rule: 'yaml-template',
  remedy: 'render it first, such as helm template NAME CHART | kubectl skyhook validate -',
} as const satisfies Partial<FileProblem>

const problemOf = ({ code, message }: YAMLParseError, line: number): FileProblem => ({
  severity: 'error',
  line,
  pointer: '',
  message: `is not YAML: ${(message.split('\n')[0] ?? '').replace(/ at line \d+, column \d+:?$/, '')}`,
  rule: 'yaml-syntax',
  remedy:
    code === 'DUPLICATE_KEY'
      ? 'remove one of the two: tools that take such a file take only one of them'
      : 'correct the indentation, quotes and brackets around this line',
})

const timestampTag = 'tag:yaml.org,2002:timestamp'

function offsetOf(document: Document, pointer: string): number {
  const segments = pointer.split('/').slice(1)
  let node = document.contents as Node | null
  let offset = startOf(node) ?? 0
  for (const segment of segments) {
    const name = segment.replaceAll('~1', '/').replaceAll('~0', '~')
    if (isMap(node)) {
      const pair = (node.items as Pair<unknown, Node | null>[]).find(
        ({ key }) => String(isScalar(key) ? key.value : key) === name,
      )
      if (pair === undefined) break
      offset = startOf(pair.key as Node) ?? offset
      node = pair.value
    } else if (isSeq(node)) {
      node = (node.items as Node[])[Number(name)] ?? null
      if (node === null) break
      offset = startOf(node) ?? offset
    } else break
  }
  return offset
}

const startOf = (node: Node | null): number | undefined => node?.range?.[0]
