/** What agents have found on their hosts, by the annotation on each Node. */
import { hostKey } from '../../schemas/annotations.ts'
import { isObject, parseJson } from '../../schemas/json.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from './finding.ts'
import { counted } from '../../schemas/wording.ts'

/** One finding of an agent's look at its host. */
type Reported = {
  readonly node: string
  /** Of src/host/preflight/findings.ts, such as `noexec`. */
  readonly problem: string
  readonly severity: string
  readonly message: string
  readonly remedy: string
}

export function checkHosts(nodes: Known<readonly KubernetesNode[]>): Check {
  if (!nodes.known) return checkOf('hosts', { unknown: [nodes.why] })
  const reports = nodes.value.map((node) => ({ node: node.metadata.name, report: reportOf(node) }))
  const silent = reports.filter(({ report }) => report === undefined).map(({ node }) => node)
  const reported = reports.flatMap(({ node, report }) => findingsIn(node, report))
  // hosts with the same problem belong together
  const groups = Map.groupBy(reported, ({ severity, message }) => `${severity}\n${message}`)
  const [only, ...others] = reports
  return checkOf('hosts', {
    findings: [...groups.values()].flatMap(hostFinding),
    unknown: silent.length > 0 ? [`no agent has described the hosts of ${namedSome(silent)}`] : [],
    about:
      only?.report !== undefined && others.length === 0
        ? factsText(only.report)
        : `${counted(reports.length - silent.length, 'host')} described by their agents`,
  })
}

function reportOf({ metadata }: KubernetesNode): Readonly<Record<string, unknown>> | undefined {
  const report = parseJson(metadata.annotations?.[hostKey] ?? '')
  return isObject(report) ? report : undefined
}

function findingsIn(node: string, report: Readonly<Record<string, unknown>> | undefined): readonly Reported[] {
  const findings = report?.['findings']
  if (!Array.isArray(findings)) return []
  return findings.filter(isObject).map((one) => ({
    node,
    problem: textOf(one['id']),
    severity: textOf(one['severity']),
    message: textOf(one['message']),
    remedy: textOf(one['remedy']),
  }))
}

function hostFinding(group: readonly Reported[]): readonly Finding[] {
  const [first] = group
  if (first === undefined) return []
  const nodes = group.map(({ node }) => node)
  return [
    finding(first.severity === 'error' ? 'host-error' : 'host-warning', {
      message: `${first.problem} on ${namedSome(nodes)}: ${first.message}`,
      remedy: first.remedy,
      command: `kubectl skyhook doctor --node ${nodes[0] ?? ''}`,
      objects: nodes.map((name) => ({ kind: 'Node', name })),
    }),
  ]
}

function factsText(report: Readonly<Record<string, unknown>>): string {
  const { os, kernel, systemd, cgroup, selinux, copyDirRoot } = report
  const folder = isObject(copyDirRoot) ? `packages on ${textOf(copyDirRoot['fileSystem'])}` : ''
  const facts = [os, kernel && `kernel ${textOf(kernel)}`, systemd && `systemd ${textOf(systemd)}`]
  const more = [cgroup && `cgroup ${textOf(cgroup)}`, selinux && `SELinux ${textOf(selinux)}`, folder]
  return [...facts, ...more].map(textOf).filter(Boolean).join(', ')
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
