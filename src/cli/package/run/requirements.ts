/** What this machine and the base need for a throw-away host. Pure. */
import { CommandError, usageError, exitCodes } from '../../framework/command-error.ts'

export type RunMachine = {
  /** As Node names it: `linux`, `darwin`, … */
  readonly platform: string
  readonly uid: number
  /** Whether PATH has a program of this name. */
  readonly hasProgram: (name: string) => boolean
}

/** Programs, and how their package is called by most distributions. */
const programs: Readonly<Record<string, string>> = {
  'systemd-nspawn': 'systemd-container',
  unshare: 'util-linux',
  setpriv: 'util-linux',
  mount: 'util-linux',
  sh: 'dash or bash',
  grep: 'grep',
  find: 'findutils',
}

export const neededPrograms: readonly string[] = Object.keys(programs)

/** Where the base of the host is expected without --root. */
export const defaultBase = '/var/lib/machines/skyhook-package-run'

/** Makes such a base. Beside systemd and its bus: what scripts of packages commonly use. */
export const baseCommand = (folder: string): string =>
  'debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,libpam-systemd,procps,kmod,iproute2,cron ' +
  `bookworm ${folder}`

/** @throws CommandError where no host can be booted on this machine: what is missing, and what to do */
export function requireMachine({ platform, uid, hasProgram }: RunMachine): void {
  const refuse = (message: string, remedy: string): never => {
    throw new CommandError(exitCodes.failed, message, remedy)
  }
  if (platform !== 'linux')
    refuse(`package run needs Linux, this is ${platform}`, 'run it on a Linux machine, or in a virtual one')
  if (uid !== 0) refuse('package run needs root: it boots a host with systemd-nspawn', 'run it with sudo')
  const missing = neededPrograms.filter((name) => !hasProgram(name))
  if (missing.length === 0) return
  const packages = [...new Set(missing.map((name) => programs[name]))]
  refuse(`package run needs ${missing.join(', ')}`, `install ${packages.join(', ')} of your distribution`)
}

export type BaseFacts = {
  readonly exists: boolean
  readonly hasSystemd: boolean
  readonly hasBus: boolean
}

/** @throws CommandError where the folder cannot be the root of a host */
export function requireBase(base: string, isDefault: boolean, { exists, hasSystemd, hasBus }: BaseFacts): void {
  if (base === '/')
    throw usageError('--root / is this machine itself', 'name the folder of another system, or omit --root')
  if (!exists && isDefault)
    throw new CommandError(
      exitCodes.notFound,
      `no system to boot the host from at ${base}`,
      `make it once: ${baseCommand(base)}\n       or name the root folder of another system with --root`,
    )
  if (!exists)
    throw new CommandError(exitCodes.notFound, `--root ${base} is not a folder`, `make it: ${baseCommand(base)}`)
  const missing = [...(hasSystemd ? [] : ['systemd']), ...(hasBus ? [] : ['D-Bus daemon'])]
  if (missing.length === 0) return
  throw usageError(
    `${base} cannot be booted: it has no ${missing.join(' and no ')}`,
    'name the root folder of a system with systemd and dbus, or install them there' +
      (hasBus ? '' : ': unlike agents, package run speaks to systemd over the bus alone'),
  )
}
