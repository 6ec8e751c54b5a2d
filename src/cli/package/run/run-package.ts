/** `package run`: from its flags to the lives of a package, each on a host of its own. */
import { platform, userInfo } from 'node:os'
import { resolve } from 'node:path'
import { createLocalRoot, type HostRoot } from '../../../host/fs/host-root.ts'
import { loadPackage } from '../../../packages/step/load-package.ts'
import type { PackageConfig } from '../../../schemas/package-config.ts'
import type { InterruptType, StageName, Interrupt } from '../../../schemas/skyhook.ts'
import type { Context } from '../../base/framework/command.ts'
import {
  CommandError,
  notFoundError,
  usageError,
  type ExitCode,
  exitCodes,
} from '../../base/framework/command-error.ts'
import { envelope } from '../../base/output/print.ts'
import { type LifeFlags, liveOnHost, type PackageSource } from './live-on-host.ts'
import { environmentNameProblem, environmentTextProblem } from '../../../schemas/environment-variable.ts'
import type { Variable } from '../../../packages/step/references.ts'
import { type Inputs, missingOnHosts } from '../../../stages/package/spec-problems.ts'
import { type LifeOptions, stagesOf } from './life.ts'
import { shownLines } from '../../../schemas/plain-text.ts'
import { counted } from '../../../schemas/wording.ts'
import type { ActReport, LifeReport } from './live.ts'

export type RunFlags = LifeFlags & {
  readonly from: string | undefined
  readonly interrupt: InterruptType | 'none'
  readonly service: readonly string[]
  readonly config: readonly string[]
  readonly env: readonly string[]
  readonly root: string | undefined
}

/** Returns `failed` where an act failed or something is left behind. @throws CommandError before anything is booted */
export async function runPackage(
  context: Context,
  { folder }: { readonly folder: string },
  flags: RunFlags,
  machine?: RunMachine,
): Promise<ExitCode> {
  const root = createLocalRoot(context.random)
  requireMachine(machine ?? (await thisMachine(root, context.environment)))
  const current = await readPackage(root, folder)
  const previous = flags.from === undefined ? undefined : await readPackage(root, flags.from)
  if (previous !== undefined && previous.config.packageName !== current.config.packageName)
    throw usageError(
      `--from ${flags.from} is the package ${previous.config.packageName}, not ${current.config.packageName}`,
      'name the folder of an earlier version of the same package',
    )
  const interrupt = interruptOf(flags.interrupt, flags.service)
  const { only } = flags
  if (only !== undefined)
    requireStage(only, current.config, {
      ...(previous && { previous: previous.config }),
      ...(interrupt && { interrupt }),
    })
  const variables = variablesOf(flags.env)
  const configMap: Record<string, string> = {}
  for (const [key, file] of configFilesOf(flags.config)) configMap[key] = await context.readText(file)
  for (const { config } of [current, ...(previous ? [previous] : [])])
    requireInputs(config, { configMap, env: variables, ...(interrupt && { interrupt }) })
  const base = await findBase(root, flags.root)

  const isText = context.format === 'table'
  const reports: RunReport[] = []
  // one stage is for somebody who repeats it: one host
  const versions = only === undefined && previous !== undefined ? [undefined, previous] : [previous]
  for (const from of versions) {
    const about = titlesOf(current.config, from?.config, only)
    if (isText) context.stdout.write(`${titleOf(about)}\n`)
    const request = { current, previous: from, interrupt, variables, configMap }
    const report = await liveOnHost({ ...request, context, root, base, flags }, (act) => {
      if (isText) context.stdout.write(actText(act))
    })
    const hasUninstall = (current.config.modes.uninstall?.length ?? 0) > 0
    reports.push({ ...about, ...report, hasUninstall })
    if (isText) context.stdout.write(endText({ ...about, ...report, hasUninstall }))
  }
  if (!isText) context.stdout.document(`${JSON.stringify(envelope('PackageLifeList', reports.map(itemOf)), null, 2)}\n`)
  return reports.every(({ isOk }) => isOk) ? exitCodes.ok : exitCodes.failed
}

const titlesOf = (current: PackageConfig, previous: PackageConfig | undefined, only: StageName | undefined) => ({
  ...(only && { only }),
  package: current.packageName,
  version: current.packageVersion,
  ...(previous && { from: previous.packageVersion }),
})

async function thisMachine(root: HostRoot, environment: Context['environment']): Promise<RunMachine> {
  const folders = (environment['PATH'] ?? '').split(':').filter((one) => one.startsWith('/'))
  const found = new Set<string>()
  for (const program of neededPrograms)
    for (const folder of folders)
      if ((await root.stat(`${folder}/${program}`).catch(() => undefined))?.isFile() === true) found.add(program)
  return { platform: platform(), uid: userInfo().uid, hasProgram: (name) => found.has(name) }
}

async function readPackage(root: HostRoot, folder: string): Promise<PackageSource> {
  const path = resolve(folder)
  if ((await root.stat(path))?.isDirectory() !== true)
    throw notFoundError(`there is no folder ${folder}`, 'name the folder of a package, with config.json in it')
  const loaded = await loadPackage(root, path)
  if (loaded.outcome === 'invalid')
    throw new CommandError(exitCodes.failed, `${folder}: ${loaded.message}`, `run kubectl skyhook validate ${folder}`)
  return { folder: path, config: loaded.config }
}

async function findBase(root: HostRoot, given: string | undefined): Promise<string> {
  const base = resolve(given ?? defaultBase)
  const inBase = createLocalRoot({ number: () => 0, hex: () => '' }, base) // only reads
  const has = async (...paths: readonly string[]): Promise<boolean> => {
    for (const path of paths) if ((await inBase.stat(path).catch(() => undefined)) !== undefined) return true
    return false
  }
  requireBase(base === '/' ? base : (given ?? defaultBase), given === undefined, {
    exists: (await root.stat(base))?.isDirectory() === true,
    hasSystemd: await has('/usr/lib/systemd/systemd', '/lib/systemd/systemd'),
    hasBus: await has('/usr/bin/dbus-daemon', '/usr/bin/dbus-broker-launch'),
  })
  return await root.realPath(base)
}

/** @throws CommandError */
export function interruptOf(type: Interrupt['type'] | 'none', services: readonly string[]): Interrupt | undefined {
  if (type === 'service') {
    if (services.length === 0)
      throw usageError('--interrupt service needs to know which', 'name them: --service cron.service')
    return { type, services }
  }
  if (services.length > 0) throw usageError(`--service does not fit --interrupt ${type}`, 'add --interrupt service')
  return type === 'none' ? undefined : { type }
}

/** @throws CommandError where the life has no such stage */
export function requireStage(only: StageName, config: PackageConfig, options: LifeOptions): void {
  const stages = stagesOf(config, options)
  if (stages.includes(only)) return
  const isOfInterrupt = only === 'interrupt' || only === 'post-interrupt'
  if (isOfInterrupt && options.interrupt === undefined)
    throw usageError(`--only ${only} does not fit --interrupt none`, 'say which interrupt the package has')
  if (only === 'apply' && options.previous !== undefined)
    throw usageError('--only apply does not fit --from: an upgrade does not run apply', 'leave out --from')
  throw usageError(
    `${config.packageName} ${config.packageVersion} has no stage ${only}`,
    stages.length === 0 ? 'its config.json names no steps' : `name one that it has: ${stages.join(', ')}`,
  )
}

/** The pieces of `KEY=FILE`. @throws CommandError */
export function configFilesOf(pieces: readonly string[]): readonly (readonly [key: string, file: string])[] {
  return pieces.map((piece) => {
    const at = piece.indexOf('=')
    if (at < 1 || at === piece.length - 1)
      throw usageError(`--config ${piece} names no key and file`, 'write --config KEY=FILE')
    return [piece.slice(0, at), piece.slice(at + 1)]
  })
}

/** A comma separates variables only where another one starts: values may have commas. @throws CommandError */
export function variablesOf(pieces: readonly string[]): Variable[] {
  const variables: Variable[] = []
  for (const piece of pieces) {
    const [, name, value = ''] = /^([^=]+)=(.*)$/s.exec(piece) ?? []
    const last = variables.at(-1)
    if (name !== undefined && environmentNameProblem(name) === undefined) variables.push({ name, value })
    else if (last !== undefined) variables[variables.length - 1] = { ...last, value: `${last.value},${piece}` }
    else throw usageError(`--env ${piece} sets no variable`, 'write --env NAME=VALUE')
  }
  for (const { name, value } of variables) {
    const problem = environmentTextProblem(value, name)
    if (problem !== undefined) throw usageError(`the value of --env ${name} ${problem}`)
  }
  return variables
}

/** @throws CommandError where an agent would not start with the package, since nobody gave what it expects */
export function requireInputs(config: PackageConfig, given: Inputs): void {
  const { files, variables } = missingOnHosts(config, given)
  const flags = [...files.map((name) => `--config ${name}=FILE`), ...variables.map((name) => `--env ${name}=VALUE`)]
  if (flags.length === 0) return
  const expected = [
    ...(files.length > 0 ? [`${files.join(', ')} in configMap`] : []),
    ...(variables.length > 0 ? [`${variables.join(', ')} in env`] : []),
  ]
  throw usageError(`the package expects ${expected.join(', and ')}`, `add ${flags.join(' ')}`)
}

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

const neededPrograms: readonly string[] = Object.keys(programs)

/** Where the base of the host is expected without --root. */
export const defaultBase = '/var/lib/machines/skyhook-package-run'

/** Makes such a base. Beside systemd and its bus: what scripts of packages commonly use. */
const baseCommand = (folder: string): string =>
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

type BaseFacts = {
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

/** One life, on one host. */
export type RunReport = LifeReport & {
  readonly package: string
  readonly version: string
  /** Of an upgrade: the version before it. */
  readonly from?: string
  /** The stage that was asked for, where it is not the whole life. */
  readonly only?: StageName
  /** False where the package has no uninstall stage: a whole life does not look for what it leaves behind. */
  readonly hasUninstall: boolean
}

const outcomeNames: Readonly<Record<ActReport['outcome'], string>> = {
  passed: 'passed',
  failed: 'failed',
  warning: 'warning',
  'not-killed': 'not killed',
}
const nameWidth = Math.max(...Object.values(outcomeNames).map((name) => name.length))
/** Of the output of a step. */
const maxDetailLines = 20

/** The line of an act, with what there is to say about it below. */
export function actText({ name, outcome, detail }: ActReport): string {
  const lines = detail.trimEnd() === '' ? [] : detail.trimEnd().split('\n')
  const shown = lines.length > maxDetailLines ? ['…', ...lines.slice(-maxDetailLines)] : lines
  return shownLines([`${outcomeNames[outcome].padEnd(nameWidth)}  ${name}`, ...shown.map((line) => `    ${line}`)])
}

type Subject = Pick<RunReport, 'package' | 'version' | 'from' | 'only'>

const titleOf = ({ package: name, version, from, only }: Subject): string =>
  `${only ?? 'life'} of ${name} ${version}${from === undefined ? '' : `, upgraded from ${from}`}`

/** What follows the acts: what is left behind, and the verdict. */
export function endText(report: RunReport): string {
  const { acts, leftBehind, ignored, isOk, hasUninstall, only } = report
  const remains = leftBehind.map(({ kind, name, change }) => `    ${change.padEnd(7)}  ${kind} ${name}`)
  const notes =
    hasUninstall || only !== undefined ? [] : ['no uninstall stage: what the package leaves behind was not checked']
  const count = (outcome: ActReport['outcome'], one: string, many?: string): string[] => {
    const found = acts.filter((act) => act.outcome === outcome).length
    return found === 0 ? [] : [counted(found, one, many)]
  }
  const verdict = [
    isOk ? 'passed' : 'failed',
    ...count('warning', 'warning'),
    ...count('not-killed', 'stage too short to be killed', 'stages too short to be killed'),
    ...(leftBehind.length === 0 ? [] : [`${leftBehind.length} left behind`]),
    ...(ignored.length === 0 ? [] : [`${ignored.length} ignored`]),
  ]
  return shownLines([...remains, ...notes, `${titleOf(report)}: ${verdict.join(', ')}`])
}

/** The same for programs. */
const itemOf = ({ isOk, acts, leftBehind, ignored, hasUninstall, ...about }: RunReport): object => ({
  ...about,
  passed: isOk,
  acts,
  hasUninstall,
  leftBehind,
  ignored,
})
