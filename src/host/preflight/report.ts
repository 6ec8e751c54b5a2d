/** What the preflight found, as it is published on the Node. Pure. */
import { clip, harmlessJson } from '../../schemas/plain-text.ts'
import type { HostFacts } from './facts.ts'
import type { Finding } from './findings.ts'

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
