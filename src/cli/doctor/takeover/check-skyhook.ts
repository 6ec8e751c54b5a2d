/** What a takeover does to one Skyhook on each of its nodes. */
import { disableKey, pauseKey } from '../../../schemas/annotations.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { selects } from '../../../schemas/selectors.ts'
import { type Check, checkOf, counted, type Finding, finding, named } from '../finding.ts'
import { type Adoption, adoptionOf, type RepeatedPackage } from './adoption.ts'
import type { OperatorSkyhook, PackageConfigMap } from './facts.ts'

type OnNode = Adoption & { readonly node: string }

/** `unknown`: what could not be read, beside Skyhooks and Nodes. */
export function checkSkyhook(
  skyhook: OperatorSkyhook,
  nodes: readonly KubernetesNode[],
  configMaps: readonly PackageConfigMap[],
  unknown: readonly string[],
): Check {
  const { metadata, spec } = skyhook
  const selected = nodes
    .filter((node) => selects(spec.nodeSelectors, node.metadata.labels ?? {}))
    .map((node): OnNode => ({ node: node.metadata.name, ...adoptionOf(skyhook, node, configMaps) }))
  const findings = metadata.deletionTimestamp === undefined ? findingsOf(metadata.name, selected) : []
  return checkOf('skyhook', { findings, unknown, about: aboutOf(skyhook, selected) })
}

const outcomes = {
  complete: 'stays complete',
  continues: 'continues',
  first: 'has not started',
  ours: 'has an agent already',
} as const satisfies Record<Adoption['outcome'], string>

function aboutOf({ metadata }: OperatorSkyhook, selected: readonly OnNode[]): string {
  const parts = (Object.keys(outcomes) as Adoption['outcome'][]).flatMap((outcome) => {
    const names = selected.filter((one) => one.outcome === outcome).map(({ node }) => node)
    return names.length === 0 ? [] : [`${outcomes[outcome]} on ${named(names)}`]
  })
  const isTrue = (key: string): boolean => metadata.annotations?.[key] === 'true'
  const held = isTrue(disableKey) ? 'disabled' : isTrue(pauseKey) ? 'paused' : undefined
  const notice =
    held && metadata.deletionTimestamp === undefined ? `${held}: nothing starts until that is taken off` : ''
  const text = parts.length === 0 ? 'selects no node' : parts.join(', ')
  return [`${metadata.name} ${text}`, ...(notice === '' ? [] : [notice])].join('; ')
}

function findingsOf(skyhook: string, selected: readonly OnNode[]): readonly Finding[] {
  const repeated = selected.flatMap(({ node, repeated: found }) =>
    found.map((one) => ({ node, text: repeatedText(one) })),
  )
  const command = `kubectl get skyhook ${skyhook} -w`
  return grouped(repeated).map(([text, names]) =>
    finding('stage-repeated', {
      message: `${text}: ${counted(names.length, 'node')} of ${skyhook}, ${named(names)}`,
      remedy:
        'its steps may run twice, so they have to bear it. To avoid that, let the operator finish before you stop ' +
        'it; a paused Skyhook starts nothing until it is resumed',
      command,
      objects: objectsOf(skyhook, names),
    }),
  )
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
