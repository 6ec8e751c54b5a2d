/** What the operator has left on Nodes and in finalizers. */
import {
  cordonedBeforeKey,
  cordonKey,
  nodeStateKey,
  skyhooksWith,
  statusKey,
  versionKey,
} from '../../../schemas/annotations.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from '../finding.ts'
import { isCordonOfPerson } from './adoption.ts'
import type { OperatorSkyhook, TakeoverFacts } from './facts.ts'

const unknownOf = ({ skyhooks, nodes }: TakeoverFacts): readonly string[] =>
  [skyhooks, nodes].flatMap((part) => (part.known ? [] : [part.why]))

export function checkCordons(facts: TakeoverFacts): Check {
  const { skyhooks, nodes } = facts
  if (!skyhooks.known || !nodes.known) return checkOf('cordons', { unknown: unknownOf(facts) })
  const cordoned = nodes.value.filter(({ spec }) => spec?.unschedulable === true)
  const marked = cordoned.filter((node) => marksOf(node).length > 0)
  const findings = marked.flatMap((node): Finding[] => {
    const { name, annotations = {} } = node.metadata
    const owner = skyhooks.value.find((skyhook) => isCordonOfPerson(skyhook, node))
    if (owner === undefined || Object.hasOwn(annotations, cordonedBeforeKey)) return []
    return [
      finding('cordon-of-person', {
        message: `${name} was cordoned before the operator picked it for ${owner.metadata.name}`,
        remedy: 'record it on the Node, or the Node becomes schedulable at the end of the work, as with the operator',
        command: `kubectl annotate node ${name} ${cordonedBeforeKey}=true`,
        objects: [{ kind: 'Node', name }],
      }),
    ]
  })
  const others = cordoned.filter((node) => !marked.includes(node))
  const about = [
    ...(marked.length > 0 ? [`agents take over those of ${namedSome(marked.map(markedText))}`] : []),
    ...(others.length > 0 ? [`leave those of ${namedSome(others.map(({ metadata }) => metadata.name))} alone`] : []),
  ]
  return checkOf('cordons', { findings, about: about.length === 0 ? 'none' : about.join(', ') })
}

const markedText = (node: KubernetesNode): string => `${node.metadata.name} (${marksOf(node).join(', ')})`

const marksOf = ({ metadata }: KubernetesNode): readonly string[] => skyhooksWith(cordonKey, metadata.annotations)

/** Skyhooks whose finalizer stays while the operator is away. */
export function checkDeletions({ skyhooks }: TakeoverFacts): Check {
  if (!skyhooks.known) return checkOf('finalizers', { unknown: [skyhooks.why] })
  const deleting = skyhooks.value.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
  const held = skyhooks.value.filter(({ metadata }) => (metadata.finalizers ?? []).length > 0)
  const findings = deleting.map((skyhook) =>
    finding('deletion-pending', {
      message: `${skyhook.metadata.name} is being deleted: agents ${endOf(skyhook)}`,
      remedy: 'no action needed; start the operator again if it should finish the work itself',
      command: `kubectl get skyhook ${skyhook.metadata.name}`,
      objects: [{ kind: 'Skyhook', name: skyhook.metadata.name }],
    }),
  )
  return checkOf('finalizers', {
    findings,
    about: held.length === 0 ? 'none' : `agents take them off ${namedSome(held.map(({ metadata }) => metadata.name))}`,
  })
}

function endOf({ spec }: OperatorSkyhook): string {
  const names = Object.entries(spec.packages ?? {}).flatMap(([name, one]) =>
    one.uninstall?.enabled === true ? [name] : [],
  )
  const first = names.length === 0 ? 'uninstall nothing' : `uninstall ${namedSome(names)}`
  return `${first}, remove its cordons and its finalizer, and it is gone`
}

/** A new Skyhook with the name of a deleted one finds what that one has left on the Nodes. */
export function checkState(facts: TakeoverFacts): Check {
  const { skyhooks, nodes } = facts
  if (!skyhooks.known || !nodes.known) return checkOf('state', { unknown: unknownOf(facts) })
  const present = new Set(skyhooks.value.map(({ metadata }) => metadata.name))
  const left = nodes.value.flatMap((node) =>
    skyhooksWith(statusKey, node.metadata.annotations)
      .filter((name) => !present.has(name))
      .map((name) => ({ name, node: node.metadata.name })),
  )
  const findings = [...Map.groupBy(left, ({ name }) => name)].map(([name, group]) => {
    const names = group.map(({ node }) => node)
    const keys = [nodeStateKey, statusKey, versionKey].map((keyOf) => `${keyOf(name)}-`)
    return finding('state-of-deleted', {
      message:
        `${namedSome(names)} still ${names.length === 1 ? 'has' : 'have'} the state of Skyhook ${name}, ` +
        'which does not exist',
      remedy:
        'remove it. A new Skyhook of this name would find its packages complete; agents do not change such annotations',
      command: [
        `kubectl annotate node ${names.join(' ')} ${keys.join(' ')}`,
        `kubectl label node ${names.join(' ')} ${statusKey(name)}-`,
      ].join(' && '),
      objects: names.map((node) => ({ kind: 'Node', name: node })),
    })
  })
  return checkOf('state', { findings, about: findings.length === 0 ? 'none of Skyhooks that do not exist' : '' })
}
