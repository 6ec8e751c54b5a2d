/** What differs between two looks at a host. Pure. */
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
/** Files that systemd writes by itself. */
const ownFiles =
  /^\/(?:etc\/(?:\.updated|machine-id|resolv\.conf|mtab|ld\.so\.cache)|var\/lib\/(?:systemd\/|dbus\/)|var\/\.updated)/

/** Kernel settings that count instead of set. */
const counters =
  /^(?:fs\.(?:dentry-state|file-nr|inode-nr|inode-state|quota\.)|kernel\.(?:random\.|ns_last_pid|pty\.nr|perf_event_max_sample_rate)|net\..*\.(?:base_reachable_time|stable_secret)|net\.netfilter\.nf_conntrack_count)|^\/sys\/.*\/(?:stats\/|pages_collapsed$|full_scans$)/

/** Sorted by kind and name. */
export function changesBetween(before: Snapshot, after: Snapshot): Change[] {
  return [
    ...differences('file', filesOf(before), filesOf(after)),
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
      ([path]) =>
        !ownFolders.some((folder) => path === folder || path.startsWith(`${folder}/`)) && !ownFiles.test(path),
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
