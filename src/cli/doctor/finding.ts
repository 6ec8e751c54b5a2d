/** What `doctor` can find. The ids are stable: people and scripts refer to them. */
import type { ObjectName } from '../reason/explain/finding.ts'
import { named, counted } from '../../schemas/wording.ts'
import { shownLines } from '../../schemas/plain-text.ts'
import { besideCells, type Cell } from '../base/output/wrap.ts'

export type { ObjectName }

/** `error`: something does not work, or is not safe. `warning`: it works, but not as the chart configures it. */
type Severity = 'error' | 'warning'

const error = (meaning: string) => ({ severity: 'error', meaning }) as const
const warning = (meaning: string) => ({ severity: 'warning', meaning }) as const

/** Each id with its severity and what it means, for the page in docs/usage. */
export const catalogue = {
  'kubernetes-too-old': error('The API server is older than the agents need.'),
  'tool-version': warning('This tool and the agents are of different versions.'),
  'agents-not-installed': error('The namespace has no DaemonSet of agents.'),
  'permission-missing': error('The agents lack a right that they need.'),
  'permission-delete-pods': error(
    'A Skyhook lets agents delete pods after the drain timeout, but they lack that right.',
  ),
  'policy-missing': error('An admission policy of the chart is missing.'),
  'policy-unbound': error('An admission policy refuses nothing: its binding is missing.'),
  'policy-not-denying': error('The binding of an admission policy does not deny.'),
  'policy-not-enforced': error(
    'An admission policy is there and bound, and the API server admits what it must refuse.',
  ),
  'policy-other-user': error('An admission policy is about another user than the agents.'),
  'policy-fails-open': warning('An admission policy that fails lets requests pass.'),
  'definition-missing': error('A resource definition is missing.'),
  'definition-not-served': error('The API server does not serve a resource definition.'),
  'definition-lacks-fields': error('A resource definition lacks fields: they are dropped.'),
  'definition-differs': warning(
    "Validation rules or limits of a resource definition differ from those of this tool's version.",
  ),
  'priority-missing': warning('A priority level of the agents is missing.'),
  'priority-dangling': warning('A FlowSchema names a priority level that does not exist.'),
  'priority-other-user': warning('A FlowSchema is about another user than the agents.'),
  'agent-missing': error('A node has no agent.'),
  'node-not-ready': error(
    'A Node is NotReady, or its kubelet renews its Lease 20 s later than others, and no package reboots it.',
  ),
  'agent-silent': error(
    'The agent of a node is not Ready: its image cannot be pulled, its container cannot be made or has ended, or ' +
      'it runs for 30 s and does not answer. Or it has been missing for ten minutes, for any reason.',
  ),
  'agents-mixed': warning('Agents of different versions are at work, and none was replaced for ten minutes.'),
  'census-silent': error(
    'No agent counts the nodes: batches wait, and percentages use the last count, if there is one.',
  ),
  'census-uncounted': error('Agents are elected to count the nodes, and none has counted for two minutes.'),
  'cordon-left-over': error('A node is cordoned for a Skyhook that does not need it.'),
  'cordon-note-left-over': warning(
    'A Node still has the annotation `cordoned-before` or `keep-off-before`, but no Skyhook cordons it.',
  ),
  'taint-without-skyhook': warning(
    'A node has the taint of new nodes, and no Skyhook with `runtimeRequired` selects it: the taint stays.',
  ),
  'node-under-pressure': warning(
    'Kubernetes has tainted a node for a lack of disk, memory or process ids, or for its network.',
  ),
  'slot-without-node': warning('A slot belongs to a Node that does not exist.'),
  'slot-of-former-node': warning('A slot is of an earlier registration of its Node.'),
  'slot-without-skyhook': warning('A slot belongs to a Skyhook that does not exist.'),
  'slot-not-renewed': error('The holder of a slot does not renew it. The slot counts.'),
  'slot-forged': error(
    'A Lease has the labels of a slot or ledger and the name of none. No agent has written or counts it.',
  ),
  'host-error': error('Something on a host keeps its agent from starting work.'),
  'host-reason': error(
    "An agent has a problem with its host, with a registry's login or connection, or with the API server. The " +
      'message is that of its reason on the Node.',
  ),
  'host-warning': warning('Something on a host limits what packages can do.'),
  'host-platform': error('Agents do not run on this system or architecture.'),
  'host-bus-silent': error('The system bus of the host, or systemd where it has none, does not answer.'),
  'host-memory-low': warning('The host has less memory left than an agent may need.'),
  'host-disk-full': error('Agents can neither record nor unpack anything on a disk.'),
  'host-disk-low': warning('A disk of the agents has little room for images of packages.'),
  'host-journal-damaged': error("The agents' journal on the host cannot be read."),
  'host-files-disputed': warning(
    'Two packages bring a file of `root_dir/` with different contents. The host has those of the last stage.',
  ),
  'stage-repeated': warning('A stage that the operator has started is repeated.'),
  'journal-outdated': warning('Agents were here before. What the operator has changed since runs again.'),
  'nodewright-served': error('The API server serves NodeWrights, on which agents do not act. They start no Skyhook.'),
  'nodewright-duplicate': error(
    'A Skyhook belongs to NodeWright, or has a NodeWright of its name. Agents do not act on it.',
  ),
  'nodewright-state': error(
    'Nodes have the state of a Skyhook under the prefix of NodeWright. Agents do not start it there.',
  ),
  'nodewright-job': error('A Job of NodeWright has not ended. It continues without its operator.'),
  'operator-running': error('The Skyhook operator, or that of NodeWright, is running.'),
  'operator-webhook': error(
    'A webhook of the operator is called for Skyhooks, or one of NodeWright has no ready endpoint.',
  ),
  'package-pod-running': error('A package pod of the operator is at work on a node.'),
  'package-pod-failing': error('A package pod of the operator fails repeatedly.'),
  'package-pod-ended': error('A package pod of the operator would run again after a reboot.'),
  'cordon-of-person': error(
    'Somebody cordoned the node before the operator marked it. Agents would uncordon it when the work is done.',
  ),
  'deletion-pending': warning('A Skyhook is being deleted: agents end it.'),
  'state-of-deleted': warning('Nodes have the state of a Skyhook that does not exist.'),
  'operator-release': warning(
    'Removing the Helm release of the operator would delete the definitions, and all Skyhooks.',
  ),
} as const satisfies Readonly<Record<string, { readonly severity: Severity; readonly meaning: string }>>

export type FindingId = keyof typeof catalogue

export type Finding = {
  readonly id: FindingId
  readonly severity: Severity
  /** The problem, without a full stop. */
  readonly message: string
  /** How to fix it. */
  readonly remedy: string
  /** The command for the remedy, or for more details. */
  readonly command?: string
  /** The affected objects. */
  readonly objects: readonly ObjectName[]
}

export const finding = (id: FindingId, rest: Omit<Finding, 'id' | 'severity'>): Finding => ({
  id,
  severity: catalogue[id].severity,
  ...rest,
})

/** In the order in which they are shown. */
type CheckName =
  | 'versions'
  | 'permissions'
  | 'policies'
  | 'definitions'
  | 'priority'
  | 'agents'
  | 'census'
  | 'cordons'
  | 'slots'
  | 'taints'
  | 'hosts'
  | 'host'
  | 'bus'
  | 'memory'
  | 'disk'
  | 'journal'
  | 'files'
  | 'nodewright'
  | 'skyhook'
  | 'operator'
  | 'jobs'
  | 'webhooks'
  | 'pods'
  | 'finalizers'
  | 'state'
  | 'release'

export type Check = {
  readonly check: CheckName
  /** The worst finding; `unknown` if there is none and something could not be checked. */
  readonly verdict: 'ok' | 'warning' | 'error' | 'unknown'
  readonly findings: readonly Finding[]
  /** What could not be checked, and why. */
  readonly unknown: readonly string[]
  /** What is in order, or was checked. */
  readonly about: string
}

/** The verdict follows from the rest. */
export function checkOf(
  check: CheckName,
  { findings = [], unknown = [], about = '' }: Partial<Pick<Check, 'findings' | 'unknown' | 'about'>>,
): Check {
  const severities = new Set(findings.map(({ severity }) => severity))
  const worst = severities.has('error') ? 'error' : severities.has('warning') ? 'warning' : undefined
  const sorted = findings.toSorted((a, b) => rank(a) - rank(b))
  return { check, verdict: worst ?? (unknown.length > 0 ? 'unknown' : 'ok'), findings: sorted, unknown, about }
}

const rank = ({ severity }: Finding): number => (severity === 'error' ? 0 : 1)

const maxNames = 8

/** Names for a message, the first of many. */
export const namedSome = (names: readonly string[]): string => named(names, maxNames)

const checkWidth = 12
const verdictWidth = 8

export function reportText(checks: readonly Check[]): string {
  const lines = checks.flatMap(({ check, verdict, findings, unknown, about }) => {
    const cells: readonly Cell[] = [
      [check, checkWidth],
      [verdict === 'error' ? 'ERROR' : verdict, verdictWidth],
    ]
    const texts = [
      ...findings.flatMap(({ id, severity, message, remedy, command }) => [
        `${severity === 'error' ? 'ERROR' : severity} ${id}: ${message}`,
        `  remedy: ${remedy}`,
        ...(command === undefined ? [] : [`  run:    ${command}`]),
      ]),
      ...unknown.map((why) => `unknown: ${why}`),
    ]
    return besideCells(cells, about === '' ? texts : [about, ...texts])
  })
  return shownLines([...lines, '', summaryOf(checks)])
}

function summaryOf(checks: readonly Check[]): string {
  const findings = checks.flatMap((one) => one.findings)
  const errors = findings.filter(({ severity }) => severity === 'error').length
  const unknown = checks.filter((one) => one.unknown.length > 0).length
  return [
    counted(errors, 'error'),
    counted(findings.length - errors, 'warning'),
    ...(unknown > 0 ? [`${counted(unknown, 'check')} not or not fully possible`] : []),
  ].join(', ')
}
