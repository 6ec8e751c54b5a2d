/** The pages on operations and security beside what they have to cover, and the index of all pages. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { nodeConditions } from '../src/schemas/catalogue/conditions.ts'
import { reasonRows } from '../src/schemas/catalogue/reasons.ts'
import { type Block, blocksOf, textOfPage } from '../test/kit/pages/page-commands.ts'

const root = join(import.meta.dirname, '..')
const read = (...path: string[]): string => readFileSync(join(root, ...path), 'utf8')
const operations = textOfPage('operations.md')
const security = textOfPage('security.md')

/** What stands between a heading and the next one of its level or above. */
function sectionOf(text: string, heading: string): string {
  const [level = ''] = heading.split(' ')
  const [, rest] = `${text}\n`.split(`\n${heading}\n`)
  if (rest === undefined) throw new Error(`there is no heading "${heading}"`)
  return rest.split(new RegExp(`^#{1,${level.length}} `, 'm'))[0] ?? ''
}
const headingsIn = (text: string): string[] => [...text.matchAll(/^### (.+)$/gm)].map(([, title = '']) => title)
const rowsOf = (text: string): string[][] =>
  [...text.matchAll(/^\| (.*) \|$/gm)].map(([, row = '']) => row.split(' | ').map((cell) => cell.trim())).slice(1)
const codeIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)

const reasons = reasonRows.map(([name]) => name)

test('the runbook has an entry for each reason, and no other one', () => {
  expect(headingsIn(sectionOf(operations, '## Reasons')).toSorted()).toEqual(reasons.toSorted())
})

test.each(reasons)('the runbook says about %s what it means, how to look, what to do and whom to call', (reason) => {
  const entry = sectionOf(operations, `### ${reason}`)
  expect(entry.trim()).toMatch(/^[A-Z`].{30}/)
  expect(blocksOf('operations.md', `### ${reason}\n${entry}`).length).toBeGreaterThan(0)
  expect(entry).toMatch(/^\* \*\*Do\*\*: \S/m)
  expect(entry).toMatch(/^\* \*\*Call\*\* \S/m)
})

test('the runbook says about each alert what it means, how to look, what to do and whom to call, with a link', () => {
  const { groups } = parse(read('chart', 'monitoring', 'alerts.yaml')) as {
    groups: readonly { rules: readonly { alert: string }[] }[]
  }
  const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert))
  const rows = rowsOf(sectionOf(operations, '## Alerts'))
  expect(rows.map(([link = '']) => link).toSorted()).toEqual(
    alerts.map((alert) => `[${alert}](alerts.md#${alert.toLowerCase()})`).toSorted(),
  )
  for (const row of rows) expect(row.filter((cell) => cell.length > 5)).toHaveLength(5)
})

type Rule = {
  readonly resources?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
  readonly verbs: readonly string[]
}
type Role = {
  readonly kind: string
  readonly metadata: { readonly namespace?: string }
  readonly rules?: readonly Rule[]
}

/** `verb resource in place` of the roles in the template, with every right that a value of the chart adds. */
function rightsOf(template: string): string[] {
  const text = template.replaceAll(/^\s*\{\{.*\}\}\n/gm, '').replaceAll(/\{\{ (if|end)[^}]*\}\}/g, '')
  const plain = text.replaceAll('{{ .Release.Namespace }}', 'release').replaceAll(/\{\{[^}]*\}\}/g, 'x')
  return parseAllDocuments(plain).flatMap((document) => {
    const { metadata, rules = [] } = document.toJS() as Role
    const place = metadata.namespace ?? 'cluster'
    return rules.flatMap(({ resources, nonResourceURLs = [], verbs }) =>
      (resources ?? nonResourceURLs).flatMap((resource) => verbs.map((verb) => `${verb} ${resource} in ${place}`)),
    )
  })
}

test('the security model names every right of the agents, what it is for, and no other right', () => {
  const rows = rowsOf(sectionOf(security, '## What each permission is for'))
  const named = rows.flatMap(([resources = '', verbs = '', place = '']) =>
    codeIn(resources).flatMap((resource) => verbs.split(', ').map((verb) => `${verb} ${resource} in ${place}`)),
  )
  expect(named.toSorted()).toEqual(rightsOf(read('chart', 'templates', 'rbac.yaml')).toSorted())
  for (const [resource, , , purpose = ''] of rows) expect([resource, purpose.length > 10]).toEqual([resource, true])
})

test('the security model names every admission policy of the chart', () => {
  const templates = readdirSync(join(root, 'chart', 'templates')).filter((file) => file.startsWith('policy-'))
  const policies = templates.flatMap((file) =>
    [...read('chart', 'templates', file).matchAll(/policyName: \{\{ \$name \}\}-([\w-]+)/g)].map(
      ([, name = '']) => name,
    ),
  )
  expect(policies.length).toBeGreaterThan(6)
  expect([...new Set(policies)].filter((policy) => !codeIn(security).includes(policy))).toEqual([])
})

/** Rights by what comes of them for a thief, in the table that the tests of the cluster try row by row. */
function triedRights(outcome: 'refused' | 'reachable'): string[] {
  const rows = rowsOf(sectionOf(read('chart', 'README.md'), '## What an agent may do'))
  const rights = rows
    .filter(([, , , , , result = '']) => result.startsWith(outcome))
    .flatMap(([resource = '', verbs = '']) => verbs.split(', ').map((verb) => `${verb} ${codeIn(resource)[0]}`))
  return [...new Set(rights)].toSorted()
}

test.each([
  ['cannot', 'refused', '**It cannot**', '**It can**'],
  ['can', 'reachable', '**It can**', 'On its own Node'],
] as const)('the security model says what a stolen token %s do, right by right', (_, outcome, from, to) => {
  const section = sectionOf(security, '## What a stolen token can do')
  const list = section.split(`\n${from}\n`)[1]?.split(`\n${to}`)[0] ?? ''
  const items = list.split(/^\* /m).slice(1)
  const rights = items.flatMap((item) => codeIn(item.split(/:\s/)[0] ?? ''))
  expect([...new Set(rights)].toSorted()).toEqual(triedRights(outcome))
})

/** Annotations and labels that the Skyhook operator has, too. */
const operatorKeys = ['nodeState_', 'status_', 'version_', 'cordon_', 'ignore', 'pause', 'disable']

test('compatibility names every annotation and condition that the operator does not have', () => {
  const compatibility = read('docs', 'compatibility.md')
  const keys = [...read('src', 'schemas', 'annotations.ts').matchAll(/`\$\{apiGroup\}\/([\w-]+)/g)].map(
    ([, key = '']) => key,
  )
  expect(operatorKeys.filter((key) => !keys.includes(key))).toEqual([])
  const own = keys.filter((key) => !operatorKeys.includes(key))
  expect(own.filter((key) => !compatibility.includes(`\`${key}`) && !compatibility.includes(`/${key}`))).toEqual([])
  const conditions = Object.entries(nodeConditions).filter(([, { origin }]) => origin === 'skyhookd')
  for (const [type] of conditions) expect(compatibility).toContain(`\`${type}\``)
})

test('the index of the pages leads to each of them', () => {
  const index = read('docs', 'README.md')
  const pages = readdirSync(join(root, 'docs', 'usage')).filter((file) => file.endsWith('.md'))
  expect(pages.filter((page) => !index.includes(`(usage/${page})`))).toEqual([])
  expect(read('README.md')).toContain('(docs/README.md)')
})

test('blocks in lists are read without their indentation, and an unknown place is refused', () => {
  const list = '## A\n\n* x\n\n  ```sh host\n  ls \\\n    -l\n  ```\n'
  const expected: Partial<Block> = { section: 'A', line: 5, place: 'host', script: 'ls \\\n  -l\n' }
  expect(blocksOf('page', list)).toMatchObject([expected])
  expect(() => blocksOf('page', '```sh later\nls\n```\n')).toThrow('page:1: a block is "sh", "sh host"')
})
