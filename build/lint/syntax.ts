/** What the lint rules of this project share: the parts of the syntax tree and of the rule context that they use. */

import { relative } from 'node:path'

export type Node = { readonly type: string; readonly [key: string]: unknown }
export type Position = { readonly line: number; readonly column: number }
export type Place = { readonly node: Node } | { readonly loc: { readonly start: Position; readonly end: Position } }
export type Context = {
  readonly filename: string
  readonly sourceCode: { readonly lines: readonly string[] }
  report(found: Place & { readonly message: string }): void
}

/** The path inside of the repository, `src/kube/watch.ts`; undefined for files outside of `src`. */
export function sourcePath(filename: string): string | undefined {
  const start = filename.replaceAll('\\', '/').lastIndexOf('/src/')
  return start === -1 ? undefined : filename.slice(start + 1)
}

/** The path from the folder that is linted. */
export const repositoryPath = (filename: string): string => relative(process.cwd(), filename)

/** As `sourcePath`, for product files only: tests may do what the product may not. */
export function productPath(filename: string): string | undefined {
  return filename.endsWith('.test.ts') ? undefined : sourcePath(filename)
}

/** The text of an identifier or of a string literal; empty for everything else. */
export function nameOf(node: unknown): string {
  const { name, value } = (node ?? {}) as { name?: unknown; value?: unknown }
  return typeof name === 'string' ? name : typeof value === 'string' ? value : ''
}

/** The name under which a module exports what is imported: `*` for all of it, `default` for the default export. */
export function importedName(specifier: Node): string {
  if (specifier.type === 'ImportSpecifier') return nameOf(specifier['imported'])
  return specifier.type === 'ImportNamespaceSpecifier' ? '*' : 'default'
}

/** A visitor that calls `check` for each statement and expression which names another module. */
export function eachImport(check: (node: Node, from: string) => void): Record<string, (node: Node) => void> {
  const visit = (node: Node): void => {
    const from = nameOf(node['source'])
    if (from !== '') check(node, from)
  }
  return {
    ImportDeclaration: visit,
    ExportNamedDeclaration: visit,
    ExportAllDeclaration: visit,
    ImportExpression: visit,
  }
}
