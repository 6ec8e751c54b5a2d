/** What a takeover does to one Skyhook on each of its nodes. */
import { disableKey, pauseKey } from '../../../schemas/annotations.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { selects } from '../../../schemas/selectors.ts'
import { type Check, checkOf, counted, type Finding, type FindingId, finding, named } from '../finding.ts'
import { type Adoption, adoptionOf, type UnfinishedPackage } from './adoption.ts'
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
  'starts-over': 'continues',
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

const lossTexts = {
  lostUninstalls: {
    id: 'uninstall-lost',
    what: (text: string) => `is uninstalling ${text}, and no agent would continue it`,
    remedy: 'let the operator finish: what the uninstall has not taken off would stay on the host',
  },
  lostInterrupts: {
    id: 'interrupt-lost',
    what: (text: string) => `has configured ${text} and still owes its interrupt, which no agent would make up for`,
    remedy: 'let the operator finish: the package would count as complete without it',
  },
  lostConfigs: {
    id: 'config-lost',
    what: (text: string) => `has ${text} with another configuration than the spec, which agents would take for done`,
    remedy:
      'let the operator roll it out, or put the old configuration back and change it again when the agents are there',
  },
} as const satisfies Record<string, { id: FindingId; what: (text: string) => string; remedy: string }>

function findingsOf(skyhook: string, selected: readonly OnNode[]): readonly Finding[] {
  const losses = (Object.keys(lossTexts) as (keyof typeof lossTexts)[]).flatMap((kind) => {
    const { id, what, remedy } = lossTexts[kind]
    const found = selected.flatMap((one) => one[kind].map((text) => ({ node: one.node, text })))
    return grouped(found).map(([text, names]) =>
      finding(id, {
        message: `the operator ${what(text)}, for ${skyhook} on ${named(names)}`,
        remedy,
        command: `kubectl get skyhook ${skyhook} -w`,
        objects: objectsOf(skyhook, names),
      }),
    )
  })
  const unfinished = selected.flatMap(({ node, startsOver }) =>
    startsOver.map((one) => ({ node, text: unfinishedText(one) })),
  )
  return [
    ...losses,
    ...grouped(unfinished).map(([text, names]) =>
      finding('starts-over', {
        message: `${text}: ${counted(names.length, 'node')} of ${skyhook}, ${named(names)}`,
        remedy:
          'steps may run twice, so they have to bear it. To avoid that, let the operator finish before you stop it; ' +
          'a paused Skyhook starts nothing until it is resumed',
        command: `kubectl get skyhook ${skyhook} -w`,
        objects: objectsOf(skyhook, names),
      }),
    ),
  ]
}

const unfinishedText = ({ package: name, stage, interrupts }: UnfinishedPackage): string =>
  `${name} was at ${stage} and starts again from its first stage${interrupts ? ', interrupt included' : ''}`

/** Names of nodes by text. */
const grouped = (found: readonly { readonly node: string; readonly text: string }[]): readonly [string, string[]][] =>
  [...Map.groupBy(found, ({ text }) => text)].map(([text, group]) => [text, group.map(({ node }) => node)])

const objectsOf = (skyhook: string, names: readonly string[]): Finding['objects'] => [
  { kind: 'Skyhook', name: skyhook },
  ...names.map((name) => ({ kind: 'Node', name })),
]
