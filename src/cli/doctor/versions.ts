/** Whether API server, agents and this tool fit together. */
import { type Check, checkOf, type Finding, finding } from './finding.ts'
import type { ClusterFacts } from './cluster-facts.ts'

/** Since then admission policies in CEL are stable, and tokens of pods name their node (kubeVersion of the chart). */
const minKubernetes = [1, 30] as const

export function checkVersions({ serverVersion, toolVersion, fleet }: ClusterFacts): Check {
  const installation = fleet.daemonSet
  const findings: Finding[] = []
  const unknown: string[] = []
  const about: string[] = []
  if (serverVersion.known) {
    about.push(`Kubernetes ${serverVersion.value}`)
    if (isOlder(serverVersion.value, minKubernetes))
      findings.push(
        finding('kubernetes-too-old', {
          message: `the API server runs ${serverVersion.value}, agents need v${minKubernetes.join('.')} or later`,
          remedy: 'upgrade Kubernetes: earlier versions cannot confine each agent to its own node',
          objects: [],
        }),
      )
  } else unknown.push(`version of the API server: ${serverVersion.why}`)
  if (!installation.known) unknown.push(`version of the agents: ${installation.why}`)
  else if (installation.value === undefined) findings.push(notInstalled(fleet.namespace))
  else {
    const { version, name, namespace } = installation.value
    about.push(`agents ${version ?? 'of unknown version'}`)
    if (version !== undefined && toolVersion !== 'source' && version !== toolVersion)
      findings.push(
        finding('tool-version', {
          message: `this tool is of version ${toolVersion}, the agents are of version ${version}`,
          remedy: `use the tool of version ${version}: explain and plan decide as agents of the tool's version do`,
          command: 'kubectl skyhook version',
          objects: [{ kind: 'DaemonSet', namespace, name }],
        }),
      )
  }
  about.push(`this tool ${toolVersion}`)
  return checkOf('versions', { findings, unknown, about: about.join(', ') })
}

const notInstalled = (namespace: string): Finding =>
  finding('agents-not-installed', {
    message: `namespace ${namespace} has no DaemonSet of skyhookd`,
    remedy: 'install the chart, or pass its namespace with -n',
    command: 'kubectl get daemonsets -A -l app.kubernetes.io/name=skyhookd',
    objects: [{ kind: 'Namespace', name: namespace }],
  })

/** An unreadable version is not reported as old. */
function isOlder(version: string, [minMajor, minMinor]: readonly [number, number]): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? []
  if (major === undefined || minor === undefined) return false
  return Number(major) < minMajor || (Number(major) === minMajor && Number(minor) < minMinor)
}
