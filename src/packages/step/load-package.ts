/** Loads an unpacked package: config.json and the files that it names. */
import { ignoreNotFound } from '../../host/fs/errors.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { Mode, PackageConfig } from '../../schemas/package-config.ts'
import { parsePackageConfig } from '../../schemas/parse-package-config.ts'
import { type Problem, problemText } from '../../schemas/validation.ts'
import { scriptsDir } from '../layout.ts'

export type LoadedPackage =
  | {
      readonly outcome: 'ready'
      readonly config: PackageConfig
      readonly warnings: readonly Problem[]
      /** sha256 in hex by step path: a step that the agent guards runs again if its file changed. */
      readonly contentHashes: ReadonlyMap<string, string>
      /** Names of the files in `configmaps/` of the image. */
      readonly ownConfigFiles: readonly string[]
    }
  /** `message` names file, place and value of as many problems as fit into an Event. */
  | {
      readonly outcome: 'invalid'
      readonly reason: 'InvalidPackage'
      readonly message: string
      readonly problems: readonly Problem[]
    }

/** Larger than any real config.json. A larger file is not read into memory. */
const maxConfigBytes = 4 << 20

/**
 * Reads the package whose content (`config.json`, `skyhook_dir/`, …) lies in `dir` of the host. Reports all problems
 * that can be found without running a step. Rejects only on a disk error.
 */
export async function loadPackage(host: HostRoot, dir: string): Promise<LoadedPackage> {
  const text = await readConfigFile(host, `${dir}/config.json`)
  if (typeof text !== 'string') return invalid([text])

  const parsed = parsePackageConfig(text)
  if (parsed.outcome === 'invalid') return invalid(parsed.problems)

  const contentHashes = new Map<string, string>()
  const problems: Problem[] = []
  for (const [path, pointer] of stepPaths(parsed.config)) {
    const hashOrProblem = await examineScript(host, dir, path)
    if (typeof hashOrProblem === 'string') contentHashes.set(path, hashOrProblem)
    else problems.push({ pointer, value: path, message: hashOrProblem.why, ...scriptRule(hashOrProblem) })
  }
  if (problems.length > 0) return invalid(problems)
  const expectedConfigFiles = await missingConfigFiles(host, dir, parsed.config, 'apply')
  const config = { ...parsed.config, expectedConfigFiles }
  const ownConfigFiles = (await host.list(`${dir}/configmaps`)) ?? []
  return { outcome: 'ready', config, warnings: parsed.warnings, contentHashes, ownConfigFiles }
}

/** Every step file once, with the JSON pointer of its first use. */
export function stepPaths(config: PackageConfig): Map<string, string> {
  const paths = new Map<string, string>()
  for (const [mode, steps] of Object.entries(config.modes)) {
    for (const [index, { path }] of steps.entries()) {
      if (!paths.has(path)) paths.set(path, `/modes/${mode}/${index}/path`)
    }
  }
  return paths
}

/**
 * Why a step's file cannot be executed on this host, as a sentence that starts with its path; undefined if it can.
 * Checked right before a unit starts: an earlier step may have installed the interpreter.
 */
export async function whyNotExecutable(
  host: HostRoot,
  script: string,
  searchPath: string,
): Promise<string | undefined> {
  const stats = await host.stat(script)
  if (stats === undefined) return `${script} no longer exists`
  if (!stats.isFile()) return `${script} is not a regular file`
  const executable = executableKind(await host.readPart(script, 'start', headBytes))
  const why =
    executable.kind === 'not-executable' ? executable.why : await missingInterpreter(host, executable, searchPath)
  return why === undefined ? undefined : `${script} ${why}`
}

/**
 * Expected configuration files that are missing in a copy dir, or in the package itself. Checked before each stage
 * except uninstall. A package may ship its own files in `configmaps/`, and its steps may write there.
 */
export async function missingConfigFiles(
  host: HostRoot,
  packageDir: string,
  config: PackageConfig,
  mode: Mode,
): Promise<string[]> {
  if (mode === 'uninstall' || mode === 'uninstall-check') return []
  const missing: string[] = []
  for (const name of new Set(config.expectedConfigFiles)) {
    if ((await host.stat(`${packageDir}/configmaps/${name}`)) === undefined) missing.push(name)
  }
  return missing
}

const maxMessageChars = 900 // an Event's message has at most 1024 bytes, and starts with the name of the package

function invalid(problems: readonly Problem[]): LoadedPackage {
  const lines = problems.map((problem) => problemText('config.json', problem))
  let message = lines[0] ?? ''
  for (const [index, line] of lines.entries()) {
    if (index === 0) continue
    if (message.length + line.length > maxMessageChars) {
      message += `; and ${lines.length - index} more`
      break
    }
    message += `; ${line}`
  }
  return { outcome: 'invalid', reason: 'InvalidPackage', message, problems }
}

async function readConfigFile(host: HostRoot, path: string): Promise<string | Problem> {
  const stats = await host.lstat(path)
  const unreadable = (message: string, remedy: string): Problem => ({
    pointer: '',
    message,
    rule: 'config-file',
    remedy,
  })
  if (stats === undefined)
    return unreadable(
      'is missing: the image has no /skyhook-package/config.json',
      'put config.json beside skyhook_dir/, and both into /skyhook-package of the image',
    )
  if (!stats.isFile()) return unreadable('is not a regular file', 'replace it by a file')
  if (stats.size > maxConfigBytes)
    return unreadable(`has ${stats.size} bytes; at most ${maxConfigBytes} are read`, 'move data into separate files')
  return (await host.readFile(path)).toString()
}

type ScriptFault = {
  readonly fault: 'missing' | 'outside' | 'not-a-file' | 'not-executable'
  readonly why: string
}

const missingScript: ScriptFault = { fault: 'missing', why: 'is not in skyhook_dir/' }

/** The hash of the script, or its fault. Links are followed only inside the package. */
async function examineScript(host: HostRoot, packageDir: string, path: string): Promise<string | ScriptFault> {
  const script = await host.realPath(`${scriptsDir(packageDir)}/${path}`).catch(ignoreNotFound)
  if (script === undefined) return missingScript
  if (!script.startsWith(`${await host.realPath(packageDir)}/`))
    return { fault: 'outside', why: 'leads out of the package' }
  const stats = await host.lstat(script)
  if (stats === undefined) return missingScript
  if (!stats.isFile()) return { fault: 'not-a-file', why: 'is not a regular file' }
  const executable = executableKind(await host.readPart(script, 'start', headBytes))
  if (executable.kind === 'not-executable') return { fault: 'not-executable', why: executable.why }
  return await host.sha256(script)
}

const scriptRemedies: Readonly<Record<ScriptFault['fault'], string>> = {
  missing: 'add the file below skyhook_dir/, or correct the path',
  outside: 'replace the link by the file that it leads to',
  'not-a-file': 'put a script or a program there',
  'not-executable': 'start a script with #! and the absolute path of its interpreter, and end lines with a line feed',
}

const scriptRule = ({ fault }: ScriptFault): Pick<Problem, 'rule' | 'remedy'> => ({
  rule: `step-file/${fault}`,
  remedy: scriptRemedies[fault],
})

/**
 * Whether the kernel can execute a step's file. Checked before a unit starts, because systemd reports only status 203.
 */

/** How many bytes of a file the kernel reads to decide (BINPRM_BUF_SIZE). */
const headBytes = 256

type ExecutableKind =
  | { readonly kind: 'elf' }
  | { readonly kind: 'script'; readonly interpreter: string; readonly argument: string }
  /** `why` continues a sentence that starts with the file's name. */
  | { readonly kind: 'not-executable'; readonly why: string }

/** Decides by the first bytes of a file. */
export function executableKind(head: Buffer): ExecutableKind {
  if (head.length === 0) return notExecutable('is empty')
  if (head.subarray(0, 4).equals(elfMagic)) return { kind: 'elf' }
  const text = head.subarray(0, headBytes).toString('latin1')
  if (!text.startsWith('#!')) {
    const byteOrderMark = text.startsWith('\u00ef\u00bb\u00bf#!') ? ' (after a byte order mark)' : ''
    return notExecutable(
      `starts with neither #! nor an ELF header${byteOrderMark}; ` +
        "a script's first line names its interpreter, for example #!/bin/bash",
    )
  }
  const end = text.indexOf('\n')
  if (end < 0 && head.length >= headBytes)
    return notExecutable(`has a first line longer than ${headBytes} bytes, which the kernel does not read`)
  const line = text.slice('#!'.length, end < 0 ? undefined : end)
  if (line.endsWith('\r'))
    return notExecutable(
      'has Windows line endings: the kernel would look for an interpreter with a carriage return in its name',
    )
  const [, interpreter = '', argument = ''] = /^[ \t]*([^ \t]*)[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
  if (!interpreter.startsWith('/'))
    return notExecutable(`has the interpreter ${JSON.stringify(interpreter)}, which is not an absolute path`)
  return { kind: 'script', interpreter, argument }
}

/** Why this host does not have the interpreter of a script; undefined if it does, and for ELF files. */
export async function missingInterpreter(
  host: HostRoot,
  executable: ExecutableKind,
  searchPath: string,
): Promise<string | undefined> {
  if (executable.kind !== 'script') return undefined
  const { interpreter, argument } = executable
  if (!(await isProgram(host, interpreter))) return `has the interpreter ${interpreter}, which is not on this host`
  if (!interpreter.endsWith('/env')) return undefined

  const program = programOfEnv(argument)
  if (program === undefined) return undefined // options that are not parsed here: env reports a missing program
  if (/\s/.test(program)) return `asks env for a program called ${JSON.stringify(program)}; several words need env -S`
  const candidates = program.includes('/') ? [program] : searchPath.split(':').map((folder) => `${folder}/${program}`)
  for (const candidate of candidates) {
    if (candidate.startsWith('/') && (await isProgram(host, candidate))) return undefined
  }
  return `asks env for ${program}, which is not on this host${program.includes('/') ? '' : ` (PATH ${searchPath})`}`
}

/** The program that `env ARGUMENT` starts. Without -S the argument is one word, including spaces. */
function programOfEnv(argument: string): string | undefined {
  const split = /^(?:-S|--split-string=)\s*(.*)$/.exec(argument)
  if (!split) return argument.startsWith('-') || argument === '' ? undefined : argument
  const parts = (split[1] ?? '').split(/\s+/).filter((word) => word !== '' && !/^[A-Za-z_]\w*=/.test(word))
  const [first] = parts
  return first === undefined || /^[-"'\\$]/.test(first) ? undefined : first
}

async function isProgram(host: HostRoot, path: string): Promise<boolean> {
  const stats = await host.stat(path).catch(ignoreNotFound)
  return stats !== undefined && stats.isFile() && (stats.mode & 0o111) !== 0
}

const elfMagic = Buffer.from('\u007fELF')

const notExecutable = (why: string): ExecutableKind => ({ kind: 'not-executable', why })
