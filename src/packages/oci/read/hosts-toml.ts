/**
 * The part of TOML that containerd's `hosts.toml` and `registries.conf` use: tables with bare or quoted keys, strings,
 * booleans, numbers and arrays. No dates, no inline tables, no multi-line strings: none of them has a meaning in these
 * files.
 */
export type TomlValue = string | boolean | number | readonly TomlValue[]
export type TomlTable = { readonly path: readonly string[]; readonly values: ReadonlyMap<string, TomlValue> }

/**
 * The tables of the file in their order (the order of hosts is the order of mirrors); the first has the empty path.
 * With `arraysOfTables` each `[[name]]` is one more table of that path; else it is refused.
 * @throws Error with the line number
 */
export function parseToml(text: string, { arraysOfTables = false } = {}): TomlTable[] {
  const scanner = createScanner(text)
  let current = new Map<string, TomlValue>()
  const tables: TomlTable[] = [{ path: [], values: current }]

  for (;;) {
    scanner.skip(/(?:\s|#[^\n]*)*/y)
    if (scanner.isAtEnd()) return tables
    const bracket = scanner.take(arraysOfTables ? /\[\[?/y : /\[/y)
    if (bracket !== undefined) {
      const path = readKey(scanner)
      if (bracket === '[') scanner.expect(/[ \t]*\]/y, '"]" after the name of a table')
      else scanner.expect(/[ \t]*\]\]/y, '"]]" after the name of an array of tables')
      current = new Map()
      tables.push({ path, values: current })
    } else {
      const key = readKey(scanner)
      scanner.expect(/[ \t]*=[ \t]*/y, '"=" after a key')
      current.set(key.join('.'), readValue(scanner))
    }
    scanner.expect(/[ \t]*(?:#[^\n]*)?(?:\r?\n|$)/y, 'the end of the line')
  }
}

function readKey(scanner: Scanner): string[] {
  const parts: string[] = []
  do {
    scanner.skip(/[ \t]*/y)
    parts.push(scanner.take(/[A-Za-z0-9_-]+/y) ?? readString(scanner) ?? scanner.fail('a key'))
  } while (scanner.take(/[ \t]*\./y) !== undefined)
  return parts
}

function readValue(scanner: Scanner): TomlValue {
  const text = readString(scanner)
  if (text !== undefined) return text
  const word = scanner.take(/true\b|false\b/y)
  if (word !== undefined) return word === 'true'
  const number = scanner.take(/[+-]?\d[\d_]*(?:\.\d+)?/y)
  if (number !== undefined) return Number(number.replaceAll('_', ''))
  if (scanner.take(/\[/y) === undefined) return scanner.fail('a string, boolean, number or array')

  const items: TomlValue[] = []
  const whitespace = /(?:\s|#[^\n]*)*/y
  for (;;) {
    scanner.skip(whitespace)
    if (scanner.take(/\]/y) !== undefined) return items
    items.push(readValue(scanner))
    scanner.skip(whitespace)
    if (scanner.take(/,/y) === undefined) {
      scanner.expect(/\]/y, '"," or "]"')
      return items
    }
  }
}

const escapes: Record<string, string> = { b: '\b', t: '\t', n: '\n', f: '\f', r: '\r', '"': '"', '\\': '\\' }

function readString(scanner: Scanner): string | undefined {
  const literal = scanner.take(/'[^'\n]*'/y)
  if (literal !== undefined) return literal.slice(1, -1)
  const basic = scanner.take(/"(?:[^"\\\n]|\\.)*"/y)
  return basic?.slice(1, -1).replace(/\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)/g, (_, escape: string) => {
    if (escape.length > 1) return String.fromCodePoint(Number.parseInt(escape.slice(1), 16))
    return escapes[escape] ?? scanner.fail('a known escape')
  })
}

type Scanner = {
  isAtEnd(): boolean
  skip(pattern: RegExp): void
  take(pattern: RegExp): string | undefined
  expect(pattern: RegExp, what: string): void
  fail(what: string): never
}

function createScanner(text: string): Scanner {
  let position = 0
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = position
    const found = pattern.exec(text)?.[0]
    if (found !== undefined) position += found.length
    return found
  }
  const fail = (what: string): never => {
    throw new Error(`line ${text.slice(0, position).split('\n').length}: expected ${what}`)
  }
  return {
    isAtEnd: () => position >= text.length,
    skip: (pattern) => void take(pattern),
    take,
    expect: (pattern, what) => {
      if (take(pattern) === undefined) fail(what)
    },
    fail,
  }
}
