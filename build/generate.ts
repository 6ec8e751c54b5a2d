/**
 * Writes every generated file of the repository that is not what its generator says. With `--check` it writes nothing
 * and fails where it would.
 */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type GeneratedFile, generatedFiles } from './generate/files.ts'

const root = join(import.meta.dirname, '..')

/** The text that the file lacks; undefined where it has it. `isWritten`: it is going to be written. */
async function missingText(file: GeneratedFile, isWritten: boolean): Promise<string | undefined> {
  const committed = existsSync(join(root, file.path)) ? readFileSync(join(root, file.path), 'utf8') : ''
  if (file.isCurrent?.(committed)) return undefined
  if (file.isCurrent !== undefined && !isWritten) return ''
  const text = await formatted(file.path, await file.text(committed))
  return text === committed ? undefined : text
}

/** As `make format` leaves it. */
async function formatted(path: string, text: string): Promise<string> {
  if (!/\.(ts|json)$/.test(path)) return text
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const biome = join(root, 'node_modules', '.bin', 'biome')
  const options = { cwd: root, maxBuffer: 2 ** 26 }
  const child = execFile(biome, ['format', `--stdin-file-path=${path}`], options, (error, stdout) => {
    if (error === null) resolve(stdout)
    else reject(error)
  })
  child.stdin?.end(text)
  return await promise
}

const isCheck = process.argv.includes('--check')
const results = await Promise.all(
  generatedFiles().map(async (file) => ({ path: file.path, text: await missingText(file, !isCheck) })),
)
for (const { path, text } of results) {
  if (text === undefined) continue
  if (!isCheck) writeFileSync(join(root, path), text)
  console.log(isCheck ? `${path} is not what its sources say: run "make generate"` : path)
  if (isCheck) process.exitCode = 1
}
