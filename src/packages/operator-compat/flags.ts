/**
 * Flag files in the operator's layout. They are a published copy: the journal records what ran and what must not run
 * again. The agent reads the files only when it adopts a node of the operator. Writing them again gives the same state,
 * so a crash in between is harmless.
 */
import { createHash } from 'node:crypto'
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { Mode, PackageConfig, Step } from '../../schemas/package-config.ts'
import type { Interrupt } from '../../schemas/skyhook.ts'
import { interruptTypeNames } from '../layout.ts'

type FlaggedStep = Pick<Step, 'path' | 'arguments' | 'returncodes'>

/**
 * The part of a flag's name after `<path>_`: base64 of Python's repr() of the unsubstituted arguments and return codes.
 */
export function flagMarker({ arguments: args, returncodes }: Omit<FlaggedStep, 'path'>): string {
  return Buffer.from(`${pythonRepr(args)}_${pythonRepr(returncodes)}`).toString('base64')
}

/** Linux: NAME_MAX, and PATH_MAX with room for the folders above. The operator's names leave room for a suffix. */
const maxFolderNameBytes = 255
const maxNameBytes = maxFolderNameBytes - '.0123456789ab.tmp'.length
const maxPathBytes = 3_000

/**
 * A step's flag below `flags/<package>/<version>/`. Base64 may contain `/`, which makes folders, as for the operator.
 * If a name is too long for a file system (about 170 bytes of arguments), the operator fails forever after the step.
 * Here the hash of the marker replaces it. This cannot miss a flag of the operator, which never writes such a flag.
 */
export function flagName(step: FlaggedStep): string {
  const marker = flagMarker(step)
  const name = `${step.path}_${marker}`
  const fits =
    Buffer.byteLength(name) <= maxPathBytes && name.split('/').every((part) => Buffer.byteLength(part) <= maxNameBytes)
  if (fits) return name
  const hash = createHash('sha256').update(name).digest('hex')
  const hashedName = `${step.path}_sha256-${hash}`
  const lastComponent = hashedName.slice(hashedName.lastIndexOf('/') + 1)
  return Buffer.byteLength(lastComponent) <= maxNameBytes
    ? hashedName
    : `${hashedName.slice(0, hashedName.length - lastComponent.length)}sha256-${hash}`
}

/** Folder of the flags of a package's version, below the Skyhook's state folder. */
export const flagsDir = (stateDir: string, config: PackageConfig): string =>
  `${stateDir}/flags/${config.packageName}/${config.packageVersion}`

/** Writes the empty file that every run leaves, unless it is an interrupt. */
export async function publishStart(host: HostRoot, stateDir: string): Promise<void> {
  await publish(host, `${stateDir}/flags/START`, '')
}

/** Called after a step of an action mode succeeded, also if the step runs every time. */
export async function publishStepFlag(
  host: HostRoot,
  stateDir: string,
  config: PackageConfig,
  step: Step,
  nowMs: number,
): Promise<void> {
  // the operator writes local time without a zone; the agent's zone is UTC
  const time = new Date(nowMs).toISOString().replace('Z', '000')
  const content = `last_run: ${time}\nstep_always_runs: ${step.idempotence === 'step' ? 'True' : 'False'}`
  await publish(host, `${flagsDir(stateDir, config)}/${flagName(step)}`, content)
}

/** Removes the flags of a package's version that is uninstalled, reset, run again or downgraded. */
export async function removeStepFlags(host: HostRoot, stateDir: string, config: PackageConfig): Promise<void> {
  await host.remove(flagsDir(stateDir, config))
}

/** True if the operator (or an agent before it) recorded the step. For adoption only. */
export async function hasStepFlag(
  host: HostRoot,
  stateDir: string,
  config: PackageConfig,
  step: FlaggedStep,
): Promise<boolean> {
  return (await host.stat(`${flagsDir(stateDir, config)}/${flagName(step)}`)) !== undefined
}

export type CheckResult = { readonly path: string; readonly failed: boolean }

/**
 * Writes the summary of a check mode that has steps. `True` means failed; the file is shared by all packages of the
 * Skyhook.
 */
export async function publishCheckResults(
  host: HostRoot,
  stateDir: string,
  mode: Mode,
  results: readonly CheckResult[],
): Promise<void> {
  const lines = results.map(({ path, failed }) => `${path} ${failed ? 'True' : 'False'}`)
  const allPassed = results.every(({ failed }) => !failed)
  await Promise.all([
    publish(host, `${stateDir}/flags/check_results`, lines.join('\n')),
    allPassed ? publish(host, `${stateDir}/flags/${mode}_ALL_CHECKED`, '') : undefined,
  ])
}

/**
 * Files of a finished interrupt: one per command (the first of `service` is the daemon-reload), without a number for
 * noop.
 */
export function interruptFlagNames(interrupt: Interrupt): string[] {
  const type = interruptTypeNames[interrupt.type]
  if (interrupt.type === 'noop') return [`${type}.complete`]
  const commands = interrupt.type === 'service' ? 1 + (interrupt.services?.length ?? 0) : 1
  return Array.from({ length: commands }, (_, index) => `${type}_${index}.complete`)
}

/** Called after an interrupt (the operator writes the flags before, and a crash then loses the interrupt). */
export async function publishInterruptFlags(
  host: HostRoot,
  stateDir: string,
  resourceId: string,
  interrupt: Interrupt,
  nowMs: number,
): Promise<void> {
  if (Buffer.byteLength(resourceId) > maxFolderNameBytes) return // the operator cannot write them either
  for (const name of interruptFlagNames(interrupt)) {
    await publish(host, `${stateDir}/interrupts/flags/${resourceId}/${name}`, (nowMs / 1000).toFixed(6))
  }
}

/** True when all of them exist, regardless of their age. */
export async function hasInterruptFlags(
  host: HostRoot,
  stateDir: string,
  resourceId: string,
  interrupt: Interrupt,
): Promise<boolean> {
  if (Buffer.byteLength(resourceId) > maxFolderNameBytes) return false
  for (const name of interruptFlagNames(interrupt))
    if ((await host.stat(`${stateDir}/interrupts/flags/${resourceId}/${name}`)) === undefined) return false
  return true
}

/** Writes the file unless it has this content: a read is cheaper than two syncs. */
async function publish(host: HostRoot, path: string, content: string): Promise<void> {
  if ((await host.readText(path)) === content) return
  await host.mkdirp(path.slice(0, path.lastIndexOf('/')))
  await host.writeFileDurable(path, content, 0o644)
}

/**
 * The text that Python's repr() gives for a list of strings or integers. It is part of the names of the operator's flag
 * files, so it must be exact (rules: unicode_repr in CPython; "printable": str.isprintable).
 */
export function pythonRepr(items: readonly (string | number)[]): string {
  return `[${items.map((item) => (typeof item === 'string' ? stringRepr(item) : String(item))).join(', ')}]`
}

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Separators except the space, and all control, format, surrogate, private and unassigned characters. */
const unprintable = /[\p{C}\p{Z}]/u

function stringRepr(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  let body = ''
  for (const character of text)
    body += character === quote ? `\\${quote}` : (escapes[character] ?? escapeCharacter(character))
  return quote + body + quote
}

function escapeCharacter(character: string): string {
  if (character === ' ' || !unprintable.test(character)) return character
  const code = character.codePointAt(0) ?? 0
  if (code <= 0xff) return `\\x${hex(code, 2)}`
  return code <= 0xffff ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`
}

const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, '0')
