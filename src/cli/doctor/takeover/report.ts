/**
 * The checks of a takeover in the order in which their findings must be fixed: open decisions, obstacles, and the
 * effect on each Skyhook.
 */
import { type Check, checkOf, type Finding, finding, namedSome } from '../finding.ts'
import { checkCordons, checkDeletions, checkState } from './check-nodes.ts'
import { checkJobs, checkNodeWright, isNodeWrightIgnored } from './check-nodewright.ts'
import { checkSkyhook } from './check-skyhook.ts'
import type { OperatorDeployment, OperatorWebhook, PackagePod, TakeoverFacts } from './facts.ts'
import type { Known } from '../../../stages/model/snapshot.ts'
import { counted } from '../../../schemas/wording.ts'

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
