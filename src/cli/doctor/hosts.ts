/** What agents have found on their hosts, by the annotation on each Node. */
import { isObject, type JsonObject } from '../../schemas/json.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { type HostFinding, hostReportOf } from '../../schemas/published.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from './finding.ts'
import { counted } from '../../schemas/wording.ts'

type Reported = HostFinding & { readonly node: string }

export function checkHosts(nodes: Known<readonly KubernetesNode[]>): Check {
  if (!nodes.known) return checkOf('hosts', { unknown: [nodes.why] })
  const reports = nodes.value.map((node) => ({ node: node.metadata.name, report: hostReportOf(node) }))
  const silent = reports.filter(({ report }) => report === undefined).map(({ node }) => node)
  const reported = reports.flatMap(({ node, report }) =>
    (report?.findings ?? []).map((one): Reported => ({ ...one, node })),
  )
  // hosts with the same problem belong together
  const groups = Map.groupBy(reported, ({ severity, message }) => `${severity}\n${message}`)
  const [only, ...others] = reports
  return checkOf('hosts', {
    findings: [...groups.values()].flatMap(hostFinding),
    unknown: silent.length > 0 ? [`no agent has described the hosts of ${namedSome(silent)}`] : [],
    about:
      only?.report !== undefined && others.length === 0
        ? factsText(only.report.facts)
        : `${counted(reports.length - silent.length, 'host')} described by their agents`,
  })
}

function hostFinding(group: readonly Reported[]): readonly Finding[] {
  const [first] = group
  if (first === undefined) return []
  const nodes = group.map(({ node }) => node)
  return [
    finding(first.severity === 'error' ? 'host-error' : 'host-warning', {
      message: `${first.id} on ${namedSome(nodes)}: ${first.message}`,
      remedy: first.remedy,
      command: `kubectl skyhook doctor --node ${nodes[0] ?? ''}`,
      objects: nodes.map((name) => ({ kind: 'Node', name })),
    }),
  ]
}

function factsText(report: JsonObject): string {
  const { os, kernel, systemd, cgroup, selinux, copyDirRoot } = report
  const folder = isObject(copyDirRoot) ? `packages on ${textOf(copyDirRoot['fileSystem'])}` : ''
  const facts = [os, kernel && `kernel ${textOf(kernel)}`, systemd && `systemd ${textOf(systemd)}`]
  const more = [cgroup && `cgroup ${textOf(cgroup)}`, selinux && `SELinux ${textOf(selinux)}`, folder]
  return [...facts, ...more].map(textOf).filter(Boolean).join(', ')
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
