/**
 * The checks of a takeover in the order in which their findings must be fixed: open decisions, obstacles, and the
 * effect on each Skyhook.
 */
import { type Check, checkOf, type Finding, finding, namedSome } from '../finding.ts'
import { checkJobs, checkNodeWright, isNodeWrightIgnored } from './check-nodewright.ts'
import type { OperatorDeployment, OperatorWebhook, PackagePod, TakeoverFacts, OperatorSkyhook } from './facts.ts'
import type { Known } from '../../../stages/model/snapshot.ts'
import { counted } from '../../../schemas/wording.ts'
import {
  disableKey,
  journalKey,
  pauseKey,
  cordonedBeforeKey,
  cordonKey,
  nodeStateKey,
  skyhooksWith,
  statusKey,
  versionKey,
} from '../../../schemas/annotations.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { selects } from '../../../schemas/selectors.ts'
import { type Adoption, adoptionOf, type AroundSkyhooks, type RepeatedPackage, isCordonOfPerson } from './adoption.ts'

/** First what only the operator can still finish, then how to stop it, then what it leaves behind. */
export const takeoverReport = (facts: TakeoverFacts): readonly Check[] => [
  checkNodeWright(facts),
  ...checkSkyhooks(facts),
  checkOperator(facts.deployments),
  checkJobs(facts.nodeWright.jobs),
  checkWebhooks(facts.webhooks),
  checkPods(facts.pods),
  checkCordons(facts),
  checkDeletions(facts),
  checkState(facts),
  checkRelease(facts),
]

function checkSkyhooks(facts: TakeoverFacts): readonly Check[] {
  const { skyhooks, nodes, configMaps, agents } = facts
  if (!skyhooks.known) return [checkOf('skyhook', { unknown: [skyhooks.why] })]
  if (!nodes.known) return [checkOf('skyhook', { unknown: [nodes.why] })]
  const around = {
    configMaps: configMaps.known ? configMaps.value : [],
    hasAgents: !agents.known || agents.value.length > 0,
    isNodeWrightIgnored: isNodeWrightIgnored(agents),
    unknown: [configMaps, agents].flatMap((part) => (part.known ? [] : [part.why])),
  }
  return skyhooks.value.map((skyhook) => checkSkyhook(skyhook, nodes.value, around))
}

function checkOperator(deployments: Known<readonly OperatorDeployment[]>): Check {
  if (!deployments.known) return checkOf('operator', { unknown: [deployments.why] })
  const findings = deployments.value
    .filter(({ replicas }) => replicas > 0)
    .map(({ namespace, name, replicas }) =>
      finding('operator-running', {
        message: `Deployment ${namespace}/${name} has ${counted(replicas, 'replica')}`,
        remedy:
          'let it finish what only it can finish, then stop it before agents start: two programs must not work on ' +
          'the same nodes',
        command: `kubectl -n ${namespace} scale deployment ${name} --replicas=0`,
        objects: [{ kind: 'Deployment', namespace, name }],
      }),
    )
  const stopped = deployments.value.filter(({ replicas }) => replicas === 0).map(({ name }) => name)
  const about = deployments.value.length === 0 ? 'no Deployment of the operator' : `${namedSome(stopped)} stopped`
  return checkOf('operator', { findings, about: findings.length > 0 ? '' : about })
}

function checkWebhooks(webhooks: Known<readonly OperatorWebhook[]>): Check {
  if (!webhooks.known) return checkOf('webhooks', { unknown: [webhooks.why] })
  const findings = webhooks.value.flatMap(webhookFinding)
  return checkOf('webhooks', {
    findings,
    unknown: webhooks.value.flatMap(({ unanswered }) => (unanswered.known ? [] : [unanswered.why])),
    about: findings.length === 0 ? 'none is called for Skyhooks, and none lacks a ready endpoint' : '',
  })
}

function webhookFinding({ kind, name, isAsked, unanswered }: OperatorWebhook): readonly Finding[] {
  const silent = unanswered.known ? unanswered.value : []
  if (!isAsked && silent.length === 0) return []
  const about = isAsked ? 'Skyhooks' : 'NodeWrights'
  const message = `${kind} ${name} is called for ${about}`
  return [
    finding('operator-webhook', {
      message: silent.length === 0 ? message : `${message}, and Service ${namedSome(silent)} has no ready endpoint`,
      remedy: 'delete it when the operator is stopped: without an answer the API server refuses every change',
      command: `kubectl delete ${kind.toLowerCase()} ${name}`,
      objects: [{ kind, name }],
    }),
  ]
}

const podTexts = {
  running: {
    id: 'package-pod-running',
    what: 'at work',
    remedy: 'wait for them to end: agents start nothing beside them',
  },
  failing: {
    id: 'package-pod-failing',
    what: 'failing repeatedly',
    remedy: 'delete them when the operator is stopped: the kubelet never gives up. An agent repeats the stage',
  },
  ended: {
    id: 'package-pod-ended',
    what: 'with nothing left to do',
    remedy: 'delete them when the operator is stopped: the kubelet runs them again after a reboot, interrupts included',
  },
} as const

/** A command line has room for so many. */
const maxPodNames = 50

function checkPods(pods: Known<readonly PackagePod[]>): Check {
  if (!pods.known) return checkOf('pods', { unknown: [pods.why] })
  const findings = (Object.keys(podTexts) as (keyof typeof podTexts)[]).flatMap((state) => {
    const { id, what, remedy } = podTexts[state]
    const found = pods.value.filter((pod) => pod.state === state)
    return [...Map.groupBy(found, ({ namespace }) => namespace)].map(([namespace, group]) => {
      const names = group.map(({ name }) => name)
      const where = [...new Set(group.map(({ node, skyhook }) => `${skyhook} on ${node}`))]
      const select = `kubectl -n ${namespace} get pods -l skyhook.nvidia.com/name -w`
      const remove = `kubectl -n ${namespace} delete pod ${names.slice(0, maxPodNames).join(' ')}`
      return finding(id, {
        message: `${counted(group.length, 'package pod')} ${what}: ${namedSome(where)}`,
        remedy,
        command: state === 'running' ? select : remove,
        objects: names.map((name) => ({ kind: 'Pod', namespace, name })),
      })
    })
  })
  return checkOf('pods', { findings, about: findings.length === 0 ? 'no package pods' : '' })
}

/** The agents' own release is the one that has made their DaemonSet. */
function checkRelease({ definitions, agents }: TakeoverFacts): Check {
  if (!definitions.known) return checkOf('release', { unknown: [definitions.why] })
  if (!agents.known && definitions.value.length > 0) return checkOf('release', { unknown: [agents.why] })
  const own = new Set(agents.known ? agents.value.map(({ release }) => release) : [])
  const others = definitions.value.filter(({ release, isGone }) => !own.has(release) && !isGone)
  const findings = [...Map.groupBy(others, ({ release }) => release)].map(([release, group]) => {
    const [namespace = '', name = ''] = release.split('/')
    return finding('operator-release', {
      message: `Helm release ${release} has made ${namedSome(group.map((one) => one.name))}`,
      remedy:
        'never uninstall that release: it would delete the definitions, and all Skyhooks with them. Install the ' +
        'agents with --take-ownership --force-conflicts, and let helm forget the release',
      command: `kubectl -n ${namespace} delete secret -l owner=helm,name=${name}`,
      objects: group.map((one) => ({ kind: 'CustomResourceDefinition', name: one.name })),
    })
  })
  return checkOf('release', { findings, about: findings.length === 0 ? 'no other Helm release' : '' })
}

type OnNode = Adoption & { readonly node: string }

/** `unknown`: what could not be read, beside Skyhooks and Nodes. */
function checkSkyhook(
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

const unknownOf = ({ skyhooks, nodes }: TakeoverFacts): readonly string[] =>
  [skyhooks, nodes].flatMap((part) => (part.known ? [] : [part.why]))

function checkCordons(facts: TakeoverFacts): Check {
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
function checkDeletions({ skyhooks }: TakeoverFacts): Check {
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
function checkState(facts: TakeoverFacts): Check {
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
