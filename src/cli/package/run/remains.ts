/** What differs between two looks at a host. Pure. */
import { matchesGlob } from '../../../schemas/selectors.ts'

export type Snapshot = {
  /** Kind, mode, owner and content of each file and folder, by path. */
  readonly files: Readonly<Record<string, string>>
  /** Kernel settings by name. */
  readonly settings: Readonly<Record<string, string>>
  /** Units that run, by name. */
  readonly units: readonly string[]
}

export type Change = {
  readonly kind: 'file' | 'setting' | 'unit'
  readonly name: string
  readonly change: 'added' | 'changed' | 'removed'
}

/** Folders in which hosts, the agent and the steps' own records change without a package's doing. */
export const ownFolders: readonly string[] = [
  '/proc',
  '/sys',
  '/dev',
  '/run',
  '/tmp',
  '/var/tmp',
  '/var/log',
  '/var/lib/skyhook',
  '/var/cache',
]
/**
 * What programs of a host keep for themselves about what they did. None of it is undone with the work, and what a
 * package really leaves shows beside it: an installed .deb in `dpkg/status` and by its files, an RPM by its files.
 */
const records: readonly string[] = Object.values({
  systemd: [
    '/etc/.updated',
    '/etc/ld.so.cache',
    '/etc/machine-id',
    '/etc/mtab',
    '/etc/resolv.conf',
    '/var/.updated',
    '/var/lib/dbus',
    '/var/lib/private',
    '/var/lib/systemd',
  ],
  dpkg: [
    '/var/lib/dpkg/*-old',
    '/var/lib/dpkg/available',
    '/var/lib/dpkg/lock*',
    '/var/lib/dpkg/triggers/Lock',
    '/var/lib/dpkg/triggers/Unincorp',
  ],
  apt: ['daily_lock', 'extended_states', 'lists', 'mirrors', 'periodic'].map((name) => `/var/lib/apt/${name}`),
  rpm: ['/var/lib/rpm', '/usr/lib/sysimage/rpm'],
  dnf: ['/var/lib/dnf', '/var/lib/yum', '/usr/lib/sysimage/libdnf5'],
  accounts: [
    '/etc/.pwd.lock',
    ...['passwd', 'group', 'shadow', 'gshadow', 'subuid', 'subgid'].map((name) => `/etc/${name}-`),
  ],
}).flat()

/** Kernel settings that count instead of set. */
const counters =
  /^(?:fs\.(?:dentry-state|file-nr|inode-nr|inode-state|quota\.)|kernel\.(?:random\.|ns_last_pid|pty\.nr|perf_event_max_sample_rate)|net\..*\.(?:base_reachable_time|stable_secret)|net\.netfilter\.nf_conntrack_count)|^\/sys\/.*\/(?:stats\/|pages_collapsed$|full_scans$)/

/**
 * Whether a pattern of `--ignore` means the change: by its name, or by a folder above it. `*` and `?` stand for
 * characters other than `/`.
 */
export function isIgnored(patterns: readonly string[], { name }: Change): boolean {
  const slashes = [...name.matchAll(/\//g)].map(({ index }) => index)
  const names = [name, ...slashes.map((end) => name.slice(0, end))]
  return patterns.some((pattern) => names.some((one) => matchesGlob(pattern.replace(/(?<=.)\/$/, ''), one)))
}

/** Sorted by kind and name. */
export function changesBetween(before: Snapshot, after: Snapshot): Change[] {
  return [
    ...differences('file', filesOf(before), filesOf(after)).filter((change) => !isIgnored(records, change)),
    ...differences('setting', settingsOf(before), settingsOf(after)),
    ...differences('unit', unitsOf(before), unitsOf(after)),
  ]
}

function differences(
  kind: Change['kind'],
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): Change[] {
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((name): Change[] => {
    const [one, other] = [before.get(name), after.get(name)]
    if (one === other) return []
    return [{ kind, name, change: one === undefined ? 'added' : other === undefined ? 'removed' : 'changed' }]
  })
}

const filesOf = ({ files }: Snapshot): Map<string, string> =>
  new Map(
    Object.entries(files).filter(
      ([path]) => !ownFolders.some((folder) => path === folder || path.startsWith(`${folder}/`)),
    ),
  )

const settingsOf = ({ settings }: Snapshot): Map<string, string> =>
  new Map(Object.entries(settings).filter(([name]) => !counters.test(name)))

/** Units of steps end by themselves; scopes and devices come and go. */
const unitsOf = ({ units }: Snapshot): Map<string, string> =>
  new Map(
    units
      .filter((name) => /\.(?:service|socket|timer|mount|path)$/.test(name) && !name.startsWith('skyhookd-'))
      .map((name) => [name, '']),
  )
