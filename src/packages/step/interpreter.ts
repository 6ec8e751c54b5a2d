/**
 * Whether the kernel can execute a step's file. Checked before a unit starts, because systemd reports only status 203.
 */
import type { HostRoot } from '../../host/fs/host-root.ts'
import { ignoreNotFound } from '../../host/fs/missing.ts'

/** How many bytes of a file the kernel reads to decide (BINPRM_BUF_SIZE). */
export const headBytes = 256

export type ExecutableKind =
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
