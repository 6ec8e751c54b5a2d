/** Problems of hosts, from the annotation of the agent on each Node. */
import { isObject, type JsonObject } from '../../schemas/json.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { ReasonCode } from '../../schemas/catalogue/reason-codes.ts'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'
import { type HostFinding, hostReportOf, type NodeReason, publishedOf } from '../../schemas/published.ts'
import type { Finding as Explanation } from '../reason/explain/finding.ts'
import { reasonFinding } from '../reason/explain/reason-finding.ts'
import type { FleetView } from '../fleet/fleet-view/fleet-view.ts'
import { valueOr } from '../fleet/fleet-view/readable.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from './finding.ts'
import { counted } from '../../schemas/wording.ts'

type Fleet = FleetView<KubernetesNode>

type HostsView = Pick<Fleet, 'skyhooks' | 'namespace' | 'takenAtMs'>

type Reported = HostFinding & { readonly node: string }

/** `nodes`: the checked ones. */
export function checkHosts(fleet: HostsView, nodes: Fleet['nodes']): Check {
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
    findings: [...[...groups.values()].flatMap(hostFinding), ...reasonFindings(fleet, nodes.value)],
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

/** Reasons whose cause is the host or the installation: an edit of the Skyhook cannot fix it. */
const hostReasons: ReadonlySet<ReasonName> = new Set([
  'HostUnusable',
  'HostUnreachable',
  'CrashLoop',
  'RebootRefused',
  'ApiServerUnavailable',
  'ApiRequestRefused',
  'InternalError',
])
const registryCodes: ReadonlySet<ReasonCode | undefined> = new Set([
  'misconfigured',
  'unauthorized',
  'denied',
  'unreachable',
  'tls',
  'rate-limited',
  'unavailable',
  'bad-response',
])

/** An API server that restarts, or reboots for a package, is back sooner. */
const lastingMs = 30_000

type ReportedReason = { readonly node: string; readonly skyhook: string; readonly found: Explanation }

/** What agents report of their hosts while they work, beyond the report of the host. */
function reasonFindings(
  { skyhooks, namespace, takenAtMs }: HostsView,
  nodes: readonly KubernetesNode[],
): readonly Finding[] {
  const reported = nodes.flatMap((node) =>
    valueOr(skyhooks, []).flatMap((skyhook): ReportedReason[] => {
      const { reason: published } = publishedOf(node, skyhook.metadata.name)
      const name = hostReasonOf(published)
      if (published === undefined || name === undefined || isReported(node, published.message)) return []
      const { message, code, sinceMs, package: about } = published
      if (name === 'ApiServerUnavailable' && takenAtMs - (sinceMs ?? -Infinity) < lastingMs) return []
      const reason = { reason: name, message, ...(code && { code }) }
      const context = { skyhook, node, namespace, record: undefined, sinceMs, preceding: undefined }
      const found = reasonFinding(reason, { ...context, packageName: about?.name })
      return [{ node: node.metadata.name, skyhook: skyhook.metadata.name, found }]
    }),
  )
  return [...Map.groupBy(reported, ({ found }) => `${found.cause}\n${found.message}`).values()].flatMap((group) => {
    const [first] = group
    if (first === undefined) return []
    const names = [...new Set(group.map(({ node }) => node))]
    return [
      finding('host-reason', {
        message: `${namedSome(names)}: ${first.found.message}`,
        remedy: first.found.unblock,
        // for a host, the command of the reason is doctor
        command:
          first.found.gate === 'host' ? `kubectl skyhook explain ${first.skyhook} ${first.node}` : first.found.command,
        objects: names.map((name) => ({ kind: 'Node', name })),
      }),
    ]
  })
}

function hostReasonOf(published: NodeReason | undefined): ReasonName | undefined {
  const found = [...hostReasons].find((one) => one === published?.reason)
  return found ?? (published?.reason === 'ImagePull' && registryCodes.has(published.code) ? 'ImagePull' : undefined)
}

const isReported = (node: KubernetesNode, message: string): boolean =>
  (hostReportOf(node)?.findings ?? []).some((one) => one.message !== '' && message.includes(one.message))

function factsText(report: JsonObject): string {
  const { os, kernel, systemd, cgroup, selinux, copyDirRoot } = report
  const folder = isObject(copyDirRoot) ? `packages on ${textOf(copyDirRoot['fileSystem'])}` : ''
  const facts = [os, kernel && `kernel ${textOf(kernel)}`, systemd && `systemd ${textOf(systemd)}`]
  const more = [cgroup && `cgroup ${textOf(cgroup)}`, selinux && `SELinux ${textOf(selinux)}`, folder]
  return [...facts, ...more].map(textOf).filter(Boolean).join(', ')
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
