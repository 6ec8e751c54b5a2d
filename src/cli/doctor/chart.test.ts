import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { expect, test } from 'vitest'
import type { Scope } from './cluster-facts.ts'
import { agentPermissions, expectedPolicies } from './permissions.ts'
import { levelSuffixes } from './cluster-report.ts'

const templateText = (name: string): string =>
  readFileSync(join(import.meta.dirname, '../../../chart/templates', name), 'utf8')

type Role = {
  readonly kind: string
  readonly metadata: { readonly namespace?: string }
  readonly rules?: readonly {
    readonly apiGroups?: readonly string[]
    readonly resources?: readonly string[]
    readonly verbs: readonly string[]
  }[]
}

/** The template with every value of the chart switched on. */
function roles(): readonly Role[] {
  const text = templateText('rbac.yaml')
    .replaceAll(/^\s*\{\{-? (if|end|include "skyhookd.labels").*\}\}\n/gm, '')
    .replaceAll('{{ .Release.Namespace }}', 'release')
    .replaceAll(/\{\{.*?\}\}/g, '')
  return parseAllDocuments(text).map((document) => document.toJS() as Role)
}

test('the rights that doctor asks for are those of the chart', () => {
  const scopeOf = ({ kind, metadata }: Role): Scope =>
    kind === 'ClusterRole' ? 'cluster' : metadata.namespace === 'release' ? 'release' : 'default'
  const granted = roles().flatMap((role) =>
    (role.rules ?? []).flatMap(({ apiGroups = [], resources = [], verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => [scopeOf(role), group, resource, verb].join(' '))),
      ),
    ),
  )
  expect(granted.length).toBeGreaterThan(20)
  expect(
    agentPermissions.map(({ scope, group, resource, verb }) => [scope, group, resource, verb].join(' ')).sort(),
  ).toEqual(granted.sort())
})

test('the policies and bindings that doctor looks for are those of the chart', () => {
  const text = ['node', 'one-slot', 'pod', 'skyhook', 'slot']
    .map((name) => templateText(`policy-${name}.yaml`))
    .join('---\n')
  const found = text.split(/^---$/m).flatMap((document) => {
    const [, suffix] = /^ {2}name: \{\{ \$name \}\}-([a-z-]+)$/m.exec(document) ?? []
    return /^kind: ValidatingAdmissionPolicy$/m.test(document) && suffix !== undefined
      ? [
          {
            suffix,
            namesAgents: /skyhookd\.(onlyAgents|agentUser)/.test(document),
            mayFailOpen: /^ {2}failurePolicy: Ignore$/m.test(document),
          },
        ]
      : []
  })
  const bindingsOf = (suffix: string): number => {
    const start = text.indexOf(`policyName: {{ $name }}-${suffix}\n`)
    const before = text.slice(0, start)
    const [, count = '1'] = /\{\{- range until (\d+) \}\}\n---\n(?:(?!\n---\n)[\s\S])*$/.exec(before) ?? []
    return start < 0 ? 0 : Number(count)
  }
  expect(found.map((one) => ({ ...one, bindings: bindingsOf(one.suffix) })).sort(bySuffix)).toEqual(
    expectedPolicies.toSorted(bySuffix),
  )
})

const bySuffix = (a: { readonly suffix: string }, b: { readonly suffix: string }): number =>
  a.suffix < b.suffix ? -1 : 1

test('the priority levels that doctor looks for are those of the chart', () => {
  const suffixes = [...templateText('api-priority.yaml').matchAll(/"suffix" "(\w+)"/g)].map(([, suffix]) => suffix)
  expect(suffixes).toEqual(levelSuffixes)
})
