import { resolve } from 'node:path'
import { createLocalRoot } from '../../host/fs/host-root.ts'
import type { Context } from '../framework/command.ts'
import { refusedError, usageError, type ExitCode, exitCodes } from '../framework/command-error.ts'
import { scaffold } from './scaffold.ts'

/** Writes the files of a new package into a folder that is empty or not there. @throws CommandError */
export async function initPackage(
  { stdout, random }: Context,
  { name, folder = name }: { readonly name: string; readonly folder: string | undefined },
  { version }: { readonly version: string },
): Promise<ExitCode> {
  if (!/^[a-z][-a-z0-9]{0,41}[a-z]$/.test(name))
    throw usageError(
      `"${name}" is not the name of a package`,
      'use lower-case letters, digits and -, such as my-tuning',
    )
  if (!/^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/.test(version))
    throw usageError(`"${version}" is not a semantic version`, 'write three numbers, such as 1.0.0')
  const root = createLocalRoot(random)
  const path = resolve(folder)
  if (((await root.list(path)) ?? []).length > 0)
    throw refusedError(`${folder} is not empty`, 'name another folder, or remove this one')
  const files = scaffold(name, version)
  for (const file of files) {
    const target = `${path}/${file.path}`
    await root.makeFolder(target.slice(0, target.lastIndexOf('/')), 0o755)
    await root.writeFile(target, file.text, file.mode)
  }
  stdout.write(files.map((file) => `${folder}/${file.path}\n`).join(''))
  return exitCodes.ok
}
