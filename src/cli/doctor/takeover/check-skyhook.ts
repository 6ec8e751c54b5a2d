/** What a takeover does to one Skyhook on each of its nodes. */
import { disableKey, journalKey, pauseKey } from '../../../schemas/annotations.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { selects } from '../../../schemas/selectors.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from '../finding.ts'
import { type Adoption, adoptionOf, type AroundSkyhooks, type RepeatedPackage } from './adoption.ts'
import type { OperatorSkyhook } from './facts.ts'
import { counted } from '../../../schemas/wording.ts'

type OnNode = Adoption & { readonly node: string }

/** `unknown`: what could not be read, beside Skyhooks and Nodes. */
export function checkSkyhook(
  skyhook: OperatorSkyhook,
  nodes: readonly KubernetesNode[],
  { unknown, ...around }: AroundSkyhooks & { readonly unknown: readonly string[] },
): Check {
  const { metadata, spec } = skyhook
  const selected = nodes
    .filter((node) => selects(spec.nodeSelectors, node.metadata.labels ?? {}))
    .map((node): OnNode => ({ node: node.metadata.name, ...adoptionOf(skyhook, node, around) }))
  const findings = metadata.deletionTimestamp === undefined ? findingsOf(metadata.name, selected) : []
  return checkOf('skyhook', { findings, unknown, about: aboutOf(skyhook, selected) })
}

const outcomes = {
  complete: 'stays complete',
  continues: 'continues',
  first: 'has not started',
  nodewright: 'has state of NodeWright',
  changed: 'has changed since agents were there',
  ours: 'has an agent already',
} as const satisfies Record<Adoption['outcome'], string>

function aboutOf({ metadata }: OperatorSkyhook, selected: readonly OnNode[]): string {
  const parts = (Object.keys(outcomes) as Adoption['outcome'][]).flatMap((outcome) => {
    const names = selected.filter((one) => one.outcome === outcome).map(({ node }) => node)
    return names.length === 0 ? [] : [`${outcomes[outcome]} on ${namedSome(names)}`]
  })
  const isTrue = (key: string): boolean => metadata.annotations?.[key] === 'true'
  const held = isTrue(disableKey) ? 'disabled' : isTrue(pauseKey) ? 'paused' : undefined
  const notice = held && metadata.deletionTimestamp === undefined ? `${held}: nothing starts until that is removed` : ''
  const text = parts.length === 0 ? 'selects no node' : parts.join(', ')
  return [`${metadata.name} ${text}`, ...(notice === '' ? [] : [notice])].join('; ')
}

function findingsOf(skyhook: string, selected: readonly OnNode[]): readonly Finding[] {
  const repeated = selected.flatMap(({ node, repeated: found }) =>
    found.map((one) => ({ node, text: repeatedText(one) })),
  )
  const command = `kubectl get skyhook ${skyhook} -w`
  const stages = grouped(repeated).map(([text, names]) =>
    finding('stage-repeated', {
      message: `${text}: ${counted(names.length, 'node')} of ${skyhook}, ${namedSome(names)}`,
      remedy:
        'its steps may run twice and must tolerate it. To avoid that, let the operator finish before you stop ' +
        'it; a paused Skyhook starts nothing until it is resumed',
      command,
      objects: objectsOf(skyhook, names),
    }),
  )
  return [...stages, ...changedFindings(skyhook, selected)]
}

/** The operator's work in the meantime is not in the journal. */
function changedFindings(skyhook: string, selected: readonly OnNode[]): readonly Finding[] {
  const names = selected.filter(({ outcome }) => outcome === 'changed').map(({ node }) => node)
  if (names.length === 0) return []
  return [
    finding('journal-outdated', {
      message:
        `agents were on ${counted(names.length, 'node')} of ${skyhook} before, ${namedSome(names)}, ` +
        'and spec or state have changed since: each package that changed is applied or configured again',
      remedy:
        'its steps may run twice and must tolerate it. To keep what the operator has done, first remove the ' +
        "agents' journal from each of these hosts (the folder /var/lib/skyhook/.agent), and then its trace from the " +
        'Nodes',
      command: `kubectl annotate node ${names.join(' ')} ${journalKey(skyhook)}-`,
      objects: objectsOf(skyhook, names),
    }),
  ]
}

const repeatedText = ({ package: name, stage }: RepeatedPackage): string =>
  stage === 'interrupt'
    ? `${name} was at its interrupt, which an agent makes, also if it was made already`
    : `${name} was at ${stage}, which an agent repeats`

/** Names of nodes by text. */
const grouped = (found: readonly { readonly node: string; readonly text: string }[]): readonly [string, string[]][] =>
  [...Map.groupBy(found, ({ text }) => text)].map(([text, group]) => [text, group.map(({ node }) => node)])

const objectsOf = (skyhook: string, names: readonly string[]): Finding['objects'] => [
  { kind: 'Skyhook', name: skyhook },
  ...names.map((name) => ({ kind: 'Node', name })),
]
