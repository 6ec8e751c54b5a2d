/** The checks of the host that doctor runs on. */
import type { HostFacts } from '../../host/preflight/facts.ts'
import { preflight } from '../../host/preflight/findings.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from './finding.ts'

export type LocalHost = {
  /** Such as `linux`. */
  readonly platform: string
  /** Such as `x64`. */
  readonly architecture: string
  readonly hostname: string
  readonly memory: Known<{ readonly totalBytes: number; readonly availableBytes: number }>
  /** The file systems on which agents keep packages and logs. */
  readonly disks: Known<readonly Disk[]>
  /** As the agents check it, but without writing a file. */
  readonly facts: HostFacts
  /** Whether the system bus answers, or systemd where there is none. */
  readonly bus: Known<'bus' | 'systemd'>
  /** The agents' record of their work here. */
  readonly journal: Known<'absent' | 'readable' | 'damaged'>
  /** Files that two packages, as `SKYHOOK/PACKAGE`, bring with different contents. */
  readonly disputes: Known<readonly FileDispute[]>
}

export type FileDispute = { readonly owners: readonly [string, string]; readonly paths: readonly string[] }

export type Disk = {
  /** The folder that is on it. */
  readonly folder: string
  readonly mount: string
  readonly sizeBytes: number
  readonly availableBytes: number
}

const mebibyte = 1 << 20
/** An image and its copy, and the journal, have to fit. */
const minDiskBytes = 200 * mebibyte
const comfortableDiskBytes = 2048 * mebibyte
/** The limit of the agent's container, which an image is unpacked within. */
const comfortableMemoryBytes = 256 * mebibyte

export function hostReport(host: LocalHost): readonly Check[] {
  return [checkSystem(host), checkBus(host), checkMemory(host), checkDisks(host), checkJournal(host), checkFiles(host)]
}

function checkSystem({ facts, platform, architecture, hostname }: LocalHost): Check {
  const objects = [{ kind: 'Host', name: hostname }]
  const findings: Finding[] = preflight(facts).map(({ id, severity, message, remedy }) =>
    finding(severity === 'error' ? 'host-error' : 'host-warning', { message: `${id}: ${message}`, remedy, objects }),
  )
  if (platform !== 'linux' || !['x64', 'arm64'].includes(architecture))
    findings.push(
      finding('host-platform', {
        message: `agents run on linux x64 and arm64, this host is ${platform} ${architecture}`,
        remedy: 'exclude the node from the nodeSelector of the chart',
        objects,
      }),
    )
  const about = [facts.os, facts.kernel && `kernel ${facts.kernel}`, facts.systemd && `systemd ${facts.systemd}`]
  return checkOf('host', { findings, about: [hostname, ...about.filter(Boolean)].join(', ') })
}

const answers = { bus: 'the system bus answers', systemd: 'no system bus; systemd answers at its private socket' }

function checkBus({ bus, hostname, platform }: LocalHost): Check {
  if (bus.known || platform !== 'linux') return checkOf('bus', { about: bus.known ? answers[bus.value] : '' })
  const silent = finding('host-bus-silent', {
    message: `the system bus does not answer: ${bus.why}`,
    remedy:
      'start dbus.service or dbus-broker.service: agents run every step through it. A host without it needs systemd',
    command: 'systemctl status dbus.service dbus.socket',
    objects: [{ kind: 'Host', name: hostname }],
  })
  return checkOf('bus', { findings: [silent] })
}

function checkMemory({ memory, hostname }: LocalHost): Check {
  if (!memory.known) return checkOf('memory', { unknown: [memory.why] })
  const { totalBytes, availableBytes } = memory.value
  const about = `${sizeText(availableBytes)} of ${sizeText(totalBytes)} available`
  if (availableBytes >= comfortableMemoryBytes) return checkOf('memory', { about })
  const low = finding('host-memory-low', {
    message: `${about}; an agent that unpacks an image may need ${sizeText(comfortableMemoryBytes)}`,
    remedy: 'look at what uses the memory, and at the memory that the kubelet reserves for the system',
    command: 'systemd-cgtop --order=memory',
    objects: [{ kind: 'Host', name: hostname }],
  })
  return checkOf('memory', { findings: [low] })
}

function checkDisks({ disks, hostname }: LocalHost): Check {
  if (!disks.known) return checkOf('disk', { unknown: [disks.why] })
  const texts = disks.value.map(
    ({ folder, availableBytes, sizeBytes }) => `${folder}: ${sizeText(availableBytes)} of ${sizeText(sizeBytes)} free`,
  )
  const findings = disks.value.flatMap((disk) => diskFinding(disk, hostname))
  return checkOf('disk', { findings, about: texts.join(', ') })
}

function diskFinding({ folder, mount, availableBytes }: Disk, hostname: string): readonly Finding[] {
  if (availableBytes >= comfortableDiskBytes) return []
  const isFull = availableBytes < minDiskBytes
  return [
    finding(isFull ? 'host-disk-full' : 'host-disk-low', {
      message: `${sizeText(availableBytes)} are free on ${mount}, where ${folder} is`,
      remedy: isFull
        ? 'make room: agents cannot record or unpack anything there. They continue as soon as they can'
        : 'make room before a rollout: images of packages are unpacked there',
      command: `df -h ${folder} && du -xhd1 ${mount}`,
      objects: [{ kind: 'Host', name: hostname }],
    }),
  ]
}

function checkJournal({ journal, hostname }: LocalHost): Check {
  if (!journal.known) return checkOf('journal', { unknown: [journal.why] })
  if (journal.value === 'absent') return checkOf('journal', { about: 'no agent has worked on this host' })
  if (journal.value === 'readable') return checkOf('journal', { about: 'readable' })
  const damaged = finding('host-journal-damaged', {
    message: "the agents' journal is not JSON",
    remedy:
      'at its start an agent keeps the file as journal.json.unreadable-<time> beside a new one, and runs all ' +
      "packages again, under the budget: look at the disk, and at the agent's log",
    command: 'dmesg --level=err,warn | tail; ls -l /var/lib/skyhook/.agent',
    objects: [{ kind: 'Host', name: hostname }],
  })
  return checkOf('journal', { findings: [damaged] })
}

function checkFiles({ disputes, hostname }: LocalHost): Check {
  if (!disputes.known) return checkOf('files', { unknown: [disputes.why] })
  const findings = disputes.value.map(({ owners: [one, other], paths }) =>
    finding('host-files-disputed', {
      message: `${one} and ${other} bring different contents for ${namedSome(paths)}`,
      remedy: 'ship the file in one package only, or rename it in one of them',
      objects: [{ kind: 'Host', name: hostname }],
    }),
  )
  return checkOf('files', { findings, about: 'no two packages bring different contents for a file' })
}

const sizeText = (bytes: number): string =>
  bytes >= 1024 * mebibyte ? `${(bytes / (1024 * mebibyte)).toFixed(1)} GiB` : `${Math.round(bytes / mebibyte)} MiB`
