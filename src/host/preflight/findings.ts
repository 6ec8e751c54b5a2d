/** What makes a host unfit, from facts about it. Pure. */
import { clip, harmlessJson } from '../../schemas/plain-text.ts'
import { systemdVersionNumber } from '../../schemas/systemd.ts'
import { type HostFacts, whyNoReboot } from './facts.ts'

/** An `error` keeps the agent from starting work; a `warning` is only published. */
export type Finding = {
  readonly id: string
  readonly severity: 'error' | 'warning'
  /** Sentences without a full stop at the end. */
  readonly message: string
  readonly remedy: string
}

/** Output of steps is appended to files since this version. */
const minSystemdVersion = 240
/** That of Debian 11, on which the tests of `test/host` have run. */
const oldestTriedSystemdVersion = 247

/** All findings, errors first. */
export function preflight(facts: HostFacts): readonly Finding[] {
  const errors = [
    ...systemdFindings(facts),
    ...userNamespaceFindings(facts),
    ...selinuxFindings(facts),
    ...facts.missingPrograms.map((program) => missingProgram(program)),
    ...noexecFindings(facts),
    ...writeFindings(facts),
  ]
  const warnings = [
    ...systemdWarnings(facts),
    ...cgroupWarnings(facts),
    ...rebootWarnings(facts),
    ...portWarnings(facts),
  ]
  return [...errors.map((found) => ({ ...found, severity: 'error' as const })), ...warnings]
}

type Problem = Omit<Finding, 'severity'>

function systemdFindings({ systemd }: HostFacts): Problem[] {
  const version = systemdVersionNumber(systemd ?? '')
  if (version === undefined || version >= minSystemdVersion) return []
  return [
    {
      id: 'systemd-version',
      message: `the host runs systemd ${version}, and steps need ${minSystemdVersion} or later`,
      remedy: "Upgrade the host's systemd, or exclude the node from the Skyhook's nodeSelectors",
    },
  ]
}

function userNamespaceFindings({ isUserNamespaced }: HostFacts): Problem[] {
  if (isUserNamespaced !== true) return []
  return [
    {
      id: 'user-namespace',
      message: 'the agent runs in its own user namespace, where its root is not root on the host',
      remedy: 'Run its pod in the user namespace of the host (hostUsers), and not under a rootless kubelet',
    },
  ]
}

/** Domains in which container runtimes confine ordinary pods; policies deny them the host's files and systemd. */
const confinedDomain = /^(?:container|svirt_lxc_net|container_init|container_kvm|svirt_kvm_net)_t$/

function selinuxFindings({ selinux, agentContext }: HostFacts): Problem[] {
  const domain = agentContext?.split(':')[2]
  if (selinux !== 'enforcing' || domain === undefined || !confinedDomain.test(domain)) return []
  return [
    {
      id: 'selinux-domain',
      message: `SELinux is enforced, and the agent runs in the domain ${domain}, which may not write the host's files`,
      remedy: "Set the chart's seLinuxOptions.type to spc_t, or to a domain with the same rights",
    },
  ]
}

const missingProgram = (program: string): Problem => ({
  id: 'missing-program',
  message: `the host has no ${program}, and every step needs it`,
  remedy: 'Install it on the host',
})

function noexecFindings({ copyDirRoot: { path, mount } }: HostFacts): Problem[] {
  if (mount?.options.includes('noexec') !== true) return []
  return [
    {
      id: 'noexec',
      message: `${path} is on ${mount.point}, which the host mounts noexec: no step can be executed there`,
      remedy: "Mount it with exec, or set the chart's copyDirRoot to a folder where programs may run",
    },
  ]
}

/** By errno; others get the general remedy. */
const refusals: Readonly<Record<string, Omit<Problem, 'message'>>> = {
  EROFS: { id: 'read-only', remedy: 'Mount it read-write, or set copyDirRoot and agentLogRoot of the chart elsewhere' },
  EPERM: {
    id: 'immutable',
    remedy: 'Look for an immutable or append-only flag with lsattr -d, and remove it with chattr',
  },
}
const otherRefusal = { id: 'not-writable', remedy: 'Make it a folder in which root can create files' }

/** One for each errno. */
function writeFindings({ copyDirRoot, otherFolders }: HostFacts): Problem[] {
  const pathsByCode = new Map<string, string[]>()
  for (const { path, mount, refusedWith } of [copyDirRoot, ...otherFolders]) {
    const code = refusedWith ?? (mount?.options.includes('ro') ? 'EROFS' : undefined)
    if (code !== undefined) pathsByCode.set(code, [...(pathsByCode.get(code) ?? []), path])
  }
  return [...pathsByCode].map(([code, paths]) => ({
    ...(refusals[code] ?? otherRefusal),
    message: `files cannot be created in ${paths.join(', ')} (${code})`,
  }))
}

function systemdWarnings({ systemd }: HostFacts): Finding[] {
  const version = systemdVersionNumber(systemd ?? '')
  if (version === undefined || version < minSystemdVersion || version >= oldestTriedSystemdVersion) return []
  return [
    {
      id: 'systemd-untried',
      severity: 'warning',
      message: `the host runs systemd ${version}, older than the oldest tested version ${oldestTriedSystemdVersion}`,
      remedy: "Try your packages on one such host first, or upgrade the host's systemd",
    },
  ]
}

function cgroupWarnings({ cgroup }: HostFacts): Finding[] {
  if (cgroup === undefined || cgroup === 'v2') return []
  return [
    {
      id: 'cgroup-v1',
      severity: 'warning',
      message: "the host's controllers are on cgroup v1: systemd ignores memoryRequest of a package's resources",
      remedy: 'Boot with systemd.unified_cgroup_hierarchy=1 if packages rely on it',
    },
  ]
}

function rebootWarnings({ container }: HostFacts): Finding[] {
  const message = whyNoReboot(container)
  if (message === undefined) return []
  const remedy = 'Reboot the machine yourself, or exclude the node from the nodeSelectors of Skyhooks that reboot'
  return [{ id: 'no-reboot', severity: 'warning', message, remedy }]
}

function portWarnings({ takenPorts = [] }: HostFacts): Finding[] {
  return takenPorts.map(({ of, port, code, holder = 'a user whom the host does not name' }) => ({
    id: 'port-taken',
    severity: 'warning',
    message:
      code === 'EADDRINUSE'
        ? `port ${port}, on which the agent serves ${of}, is taken by a program of ${holder}`
        : `the agent cannot serve ${of} on port ${port} (${code})`,
    remedy:
      code === 'EADDRINUSE'
        ? `Find the program on the host with ss -ltnp 'sport = :${port}' and end it, or set ${of}.port of the chart`
        : `Set ${of}.port of the chart; a port below 1024 needs the capability NET_BIND_SERVICE`,
  }))
}

/** Why the host cannot be worked on, for people; undefined when it can. */
export function whyUnfit(findings: readonly Finding[]): string | undefined {
  const errors = findings.filter(({ severity }) => severity === 'error')
  return errors.length === 0 ? undefined : errors.map(({ message, remedy }) => `${message}. ${remedy}`).join('; ')
}

/** What the preflight found, as it is published on the Node. Pure. */

export const maxReportBytes = 2048
const maxTextLength = 128

/** JSON of at most 2 KiB: findings that do not fit are left out from the end, and counted. */
export function hostReport(facts: HostFacts, findings: readonly Finding[]): string {
  const { mount } = facts.copyDirRoot
  const host = {
    systemd: cut(facts.systemd),
    bus: cut(facts.bus),
    cgroup: facts.cgroup,
    kernel: cut(facts.kernel),
    container: facts.container === 'unreadable' ? undefined : cut(facts.container?.manager),
    os: cut(facts.os),
    selinux: facts.selinux,
    copyDirRoot: mount && { fileSystem: cut(mount.fileSystem), flags: cut(mount.options.join(',')) },
  }
  for (let shown = findings.length; ; shown--) {
    const omitted = findings.length - shown
    const report = { ...host, findings: findings.slice(0, shown), ...(omitted > 0 && { omittedFindings: omitted }) }
    const text = harmlessJson(JSON.stringify(report))
    if (shown === 0 || Buffer.byteLength(text) <= maxReportBytes) return text
  }
}

const cut = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : clip(text, maxTextLength)
