/**
 * The text that Python's repr() gives for a list of strings or integers. It is part of the names of the operator's flag
 * files, so it must be exact (rules: unicode_repr in CPython; "printable": str.isprintable).
 */
export function pythonRepr(items: readonly (string | number)[]): string {
  return `[${items.map((item) => (typeof item === 'string' ? stringRepr(item) : String(item))).join(', ')}]`
}

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Separators except the space, and all control, format, surrogate, private and unassigned characters. */
const unprintable = /[\p{C}\p{Z}]/u

function stringRepr(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  let body = ''
  for (const character of text)
    body += character === quote ? `\\${quote}` : (escapes[character] ?? escapeCharacter(character))
  return quote + body + quote
}

function escapeCharacter(character: string): string {
  if (character === ' ' || !unprintable.test(character)) return character
  const code = character.codePointAt(0) ?? 0
  if (code <= 0xff) return `\\x${hex(code, 2)}`
  return code <= 0xffff ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`
}

const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, '0')
