/** `package run`: from its flags to the lives of a package, each on a host of its own. */
import { platform, userInfo } from 'node:os'
import { resolve } from 'node:path'
import { createLocalRoot, type HostRoot } from '../../../host/fs/host-root.ts'
import { loadPackage } from '../../../packages/step/load-package.ts'
import type { PackageConfig } from '../../../schemas/package-config.ts'
import type { InterruptType, StageName } from '../../../schemas/skyhook.ts'
import type { Context } from '../../framework/command.ts'
import { CommandError, notFoundError, usageError, type ExitCode, exitCodes } from '../../framework/command-error.ts'
import { envelope } from '../../output/print.ts'
import { configFilesOf, interruptOf, requireInputs, requireStage, variablesOf } from './inputs.ts'
import { liveOnHost, type PackageSource } from './live-on-host.ts'
import { actText, endText, itemOf, type RunReport, titleOf } from './report.ts'
import { defaultBase, neededPrograms, requireBase, requireMachine, type RunMachine } from './requirements.ts'

export type RunFlags = {
  readonly from: string | undefined
  readonly only: StageName | undefined
  readonly interrupt: InterruptType | 'none'
  readonly service: readonly string[]
  readonly config: readonly string[]
  readonly env: readonly string[]
  readonly root: string | undefined
  readonly network: 'none' | 'host'
  readonly stepTimeout: number
  readonly ignore: readonly string[]
  readonly keep: boolean
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
